"""Nouns and values that every part shares."""
