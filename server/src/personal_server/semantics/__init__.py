"""Meaning as vectors: models that embed texts, and the passages of records kept embedded.

The libraries that a model needs come with the extra `semantic`; only `semantics/worker.py` and
`semantics/model.py`, which run in a process of their own, import them.
"""
