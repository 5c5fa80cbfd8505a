"""How much the properties generate: little by default, as much as one likes at night."""

from __future__ import annotations

import os


def worlds(share: int = 1) -> range:
    """Seeds of the worlds; `PDPP_READ_WORLDS` sets how many (2 800 are a million pairs)."""
    return range(int(os.getenv("PDPP_READ_WORLDS", "60")) // share)
