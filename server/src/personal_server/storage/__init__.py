"""Where records live: ports, what stored rows mean, and SQL."""
