"""The language model as its package has it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from py3langid.langid import MODEL_DIR, MODEL_FILE

from personal_server.domain.language_model_file import STEPS
from personal_server.domain.language_model_package import unpacked


def test_what_the_package_has_is_unpacked_without_holding_it_twice() -> None:
    packed = (Path(MODEL_DIR) / MODEL_FILE).read_bytes()
    tracemalloc.start()
    try:
        unpacked(packed, STEPS)
        assert tracemalloc.get_traced_memory()[1] < 200_000_000  # 167 million; 272 with copies
    finally:
        tracemalloc.stop()
