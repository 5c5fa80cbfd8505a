"""What keeps a server for years: whose data it is, its clock, backups and their return."""
