"""Measurements: a deterministic archive, the real ingest path, the real doors."""
