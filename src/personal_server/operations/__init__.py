"""Effects that several surfaces share: reading, resolving, declaring, ingesting, granting."""
