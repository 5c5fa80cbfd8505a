"""Where records live: ports, the memory oracle that defines the meaning, and SQL for the speed."""
