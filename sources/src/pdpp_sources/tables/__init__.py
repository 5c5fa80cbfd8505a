"""Any table, described by its own columns."""
