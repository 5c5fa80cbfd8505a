"""One module per tool: validate, read, render."""
