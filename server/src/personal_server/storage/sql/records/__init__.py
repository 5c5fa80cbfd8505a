"""How records lie in the tables of a database, and how they get there."""
