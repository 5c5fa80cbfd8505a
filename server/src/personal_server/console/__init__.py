"""The pages of the owner: rendered on the server, complete without scripts."""
