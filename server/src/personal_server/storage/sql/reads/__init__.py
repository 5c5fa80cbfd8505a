"""How a plan is answered from the tables of a database."""
