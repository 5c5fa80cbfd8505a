"""A state of the store in which a test answers some of the questions itself."""

from __future__ import annotations

from typing import Any


class State:
    """`State(snapshot, horizon=3)` is the snapshot, but for what is named."""

    def __init__(self, snapshot: object, **answers: object) -> None:
        self._snapshot = snapshot
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        return self._answers[name] if name in self._answers else getattr(self._snapshot, name)
