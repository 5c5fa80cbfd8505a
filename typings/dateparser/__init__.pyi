"""What we use of dateparser is in its module `date`."""
