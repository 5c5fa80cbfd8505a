"""Merchant category codes as the library lists them."""

codes: dict[str, dict[str, str]]
