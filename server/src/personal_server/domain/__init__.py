"""The nouns of the field, frozen. A value that exists is valid; nothing here does I/O."""
