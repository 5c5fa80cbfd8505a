"""What is done for a whole database: checked, copied, described."""
