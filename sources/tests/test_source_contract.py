"""The contract that outsiders run over their readers: over the template, and a wrong one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from pdpp_kernel.source_item import SourceItem, SourceRecord
from pdpp_sources.common.export import Export
from pdpp_sources.source_contract import SourceContract
from sources.tests.outside_package import ROOT, VIEWINGS

ViewingsSource: Any = run_path(
    str(ROOT / "sources" / "src" / "pdpp_sources" / "source_template.py")
)["ViewingsSource"]


@pytest.fixture(autouse=True)
def specimen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    (tmp_path / "viewings.csv").write_bytes(VIEWINGS)
    monkeypatch.setattr(SourceContract, "specimen", tmp_path, raising=False)
    return tmp_path


class TestTheTemplate(SourceContract):
    source = ViewingsSource()


class _Forgetful:
    """Gives a record another id each time, and a field that it does not declare."""

    def __init__(self) -> None:
        self._inner, self._next = ViewingsSource(), count()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        for item in self._inner.read(export, start):
            is_record = isinstance(item, SourceRecord)
            own = {"id": str(next(self._next)), "mood": "good"}
            yield replace(item, data=item.data | own) if is_record else item


@pytest.mark.parametrize(
    "check",
    [
        SourceContract.test_every_record_has_its_declared_fields,
        SourceContract.test_reading_again_and_from_a_zip_says_the_same,
        SourceContract.test_reading_from_a_position_continues_there,
    ],
)
def test_a_reader_that_breaks_it_is_told(check: Any, tmp_path: Path) -> None:
    wrong: Any = type("Wrong", (SourceContract,), {"source": _Forgetful(), "specimen": tmp_path})
    with pytest.raises(AssertionError):
        check(wrong())
