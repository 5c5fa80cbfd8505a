"""The program that is one file: a Python with all parts, which unpacks itself and is called `pdpp`.

Source: docs/releasing.md.
"""

from __future__ import annotations

import os


def one_file_program() -> str | None:
    """Where that file lies, if this runs out of it: its first lines say so."""
    return os.environ.get("PDPP_PROGRAM")  # noqa: TID251 (set by the file itself)
