"""The error family."""
