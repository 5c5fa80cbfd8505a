"""Sources that a file describes: what of an export is a stream, a key, a time; without code."""
