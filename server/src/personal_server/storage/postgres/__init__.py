"""PostgreSQL: one schema for each owner."""
