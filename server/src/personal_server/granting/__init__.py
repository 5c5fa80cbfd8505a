"""Effects of consent: requests, decisions, tokens, clients, their end."""
