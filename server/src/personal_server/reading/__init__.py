"""Effects of a read: what a token may see, fetched and disclosed."""
