"""Meaning as vectors: models that embed texts, and the passages of records kept embedded.

The libraries that a model needs come with the extra `semantic`; only what runs in a process of its
own, `semantics/embedding_process.py` and `semantics/model.py`, imports them.
"""
