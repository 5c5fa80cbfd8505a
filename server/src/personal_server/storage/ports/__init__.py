"""What the rest of the program asks of a store: small ports, the same for every backend."""
