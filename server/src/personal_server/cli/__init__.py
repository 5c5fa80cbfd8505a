"""The commands: one module per group. Words go to standard error, data to standard output."""
