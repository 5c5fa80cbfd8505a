"""Grants, tokens and disclosures, and the chains that prove their logs."""
