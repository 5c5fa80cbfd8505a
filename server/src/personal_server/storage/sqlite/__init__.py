"""The embedded backend: one SQLite file by apsw."""
