"""Readers of real exports, one module each: files become a declaration, records and blobs."""
