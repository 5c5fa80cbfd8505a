"""Event subscriptions out: worker, signing, address guard."""
