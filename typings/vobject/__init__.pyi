"""What we use of vobject, which has no types."""
