"""Event subscriptions: what may be told, signing, sending, where it may be sent to."""
