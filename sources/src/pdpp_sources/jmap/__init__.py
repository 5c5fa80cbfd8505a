"""Accounts of mail over JMAP, in a process without network."""
