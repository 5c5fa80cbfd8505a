"""How much the properties generate: little by default, as much as one likes at night."""

from __future__ import annotations

import os

PER_WORLD = 180


def worlds() -> range:
    """Seeds of the worlds; each is read 180 times at every store."""
    return range(int(os.getenv("PDPP_READ_WORLDS", "60")))
