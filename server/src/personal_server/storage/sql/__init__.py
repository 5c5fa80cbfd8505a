"""What every SQL backend shares: one compiler, one schema, the migrations."""
