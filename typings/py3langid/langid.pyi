from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MODEL_DIR: Path
MODEL_FILE: str

class LanguageIdentifier:
    nb_classes: list[str]
    def __init__(
        self,
        nb_ptc: NDArray[np.floating[Any]],
        nb_pc: NDArray[np.floating[Any]],
        nb_classes: list[str],
        tk_nextmove: array[int],
        tk_output: list[int],
        norm_probs: bool = ...,
        min_confidence: float | None = ...,
        *,
        tk_row: Sequence[int],
    ) -> None: ...
    def classify(self, text: str | bytes) -> tuple[str, float]: ...
