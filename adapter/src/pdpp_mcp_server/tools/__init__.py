"""The six tools, one module each: check, read, render."""
