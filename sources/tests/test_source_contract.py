"""The contract that outsiders run over their readers: over the template, and a wrong one."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from itertools import count
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.source_item import SourceItem, SourceRecord
from pdpp_sources.common.export import Export
from pdpp_sources.common.source import Claim, claim, matching, without_repeats
from pdpp_sources.source_contract import SourceContract
from sources.tests.outside_package import ROOT, VIEWINGS

ViewingsSource: Any = run_path(
    str(ROOT / "sources" / "src" / "pdpp_sources" / "source_template.py")
)["ViewingsSource"]


@pytest.fixture(autouse=True)
def specimen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    (tmp_path / "viewings.csv").write_bytes(VIEWINGS + b"Heat,somewhen\n")
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
        SourceContract.test_every_record_fits_its_declaration,
        SourceContract.test_reading_again_and_from_a_zip_says_the_same,
        SourceContract.test_reading_from_a_position_continues_there,
    ],
)
def test_a_reader_that_breaks_it_is_told(check: Any, tmp_path: Path) -> None:
    wrong: Any = type("Wrong", (SourceContract,), {"source": _Forgetful(), "specimen": tmp_path})
    with pytest.raises(AssertionError):
        check(wrong())


class _Greedy:
    """Claims every file of its ending."""

    def __init__(self) -> None:
        self._inner = ViewingsSource()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def recognize(self, export: Export) -> Claim | None:
        return claim(matching(export, lambda _: True, ".csv"), "it is there")


def test_a_reader_that_claims_the_files_of_others_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        contract_of(_Greedy(), tmp_path).test_it_leaves_the_files_of_others_alone()


def test_a_specimen_without_anything_broken_fails(tmp_path: Path) -> None:
    path = tmp_path / "viewings.csv"
    path.write_bytes(VIEWINGS.splitlines(keepends=True)[0] + b"Heat,2024-02-03\n")
    with pytest.raises(AssertionError):
        contract_of(ViewingsSource(), path).test_something_in_the_specimen_is_broken()


class _Changed:
    """The reader of the template, of which the records are changed before they are told apart."""

    def __init__(self, **own: object) -> None:
        self._inner, self._own = ViewingsSource(), own
        self.declaration = deepcopy(self._inner.declaration)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        items = (
            replace(item, data=item.data | self._own) if isinstance(item, SourceRecord) else item
            for item in self._inner.read(export, start)
        )
        return without_repeats(items)


@pytest.mark.parametrize(
    "own",
    [
        {"watched_on": "1714722301.25"},
        {"watched_on": 3},
        {"watched_on": None},
        {"title": 3.5},
        {"title": "a\x00b"},
        {"id": ""},
        {"id": "a\nb"},
        {"mood": "good"},
    ],
)
def test_values_that_an_import_refuses_fail(own: dict[str, object], tmp_path: Path) -> None:
    wrong = contract_of(_Changed(**own), tmp_path)
    with pytest.raises(AssertionError):
        wrong.test_every_record_fits_its_declaration()


def test_data_that_come_under_one_key_fail(tmp_path: Path) -> None:
    wrong = contract_of(_Changed(id="one"), tmp_path)
    with pytest.raises(AssertionError):
        wrong.test_no_key_has_two_values()


@pytest.mark.parametrize(
    "side", [{"foreign_key_on": "self", "cardinality": "has_one"}, {"cardinality": "has_many"}]
)
def test_a_relation_by_a_field_that_is_not_there_fails(side: Any, tmp_path: Path) -> None:
    source = _Changed()
    (stream,) = source.declaration["streams"]
    relation = {"name": "more", "stream": stream["name"], "foreign_key": "nowhere", **side}
    contract_of(source, tmp_path).test_its_declaration_names_only_what_it_declares()
    stream["relationships"].append(relation)
    with pytest.raises(AssertionError):
        contract_of(source, tmp_path).test_its_declaration_names_only_what_it_declares()


def contract_of(source: Any, specimen: Path) -> SourceContract:
    mine: Any = type("Mine", (SourceContract,), {"source": source, "specimen": specimen})
    return mine()
