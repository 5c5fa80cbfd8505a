"""One HTTP frame for every surface."""
