"""What a value looks like when it is shown in part, and the way to the rest of it."""
