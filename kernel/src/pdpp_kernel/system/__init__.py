"""What only this kind of system has: each other kind of system would be one room like this."""
