"""Ids that are the same for the same content on every machine and in every year."""

from __future__ import annotations

import hashlib


def stable_id(prefix: str, *parts: str | bytes | int | None) -> str:
    """A short id over the parts; their order and their bounds count."""
    digest = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return f"{prefix}_{digest.hexdigest()[:24]}"
