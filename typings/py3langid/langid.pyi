from collections.abc import Sequence
from pathlib import Path
from typing import Self

MODEL_DIR: Path
MODEL_FILE: str

class LanguageIdentifier:
    @classmethod
    def from_model_file(cls, model_file: str, *, norm_probs: bool = False) -> Self: ...
    def set_languages(self, langs: Sequence[str]) -> None: ...
    def classify(self, text: str) -> tuple[str, float]: ...
