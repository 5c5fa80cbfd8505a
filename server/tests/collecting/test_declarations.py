import copy
from typing import Any

import pytest

from pdpp_kernel.errors import (
    DeclarationConflict,
    DeclarationIncompatible,
    InvalidDeclaration,
)
from personal_server.collecting.declarations import declare
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server.journal import (
    DIARY,
    ENTRIES,
    JOURNAL_RAW,
    connection,
    write,
)
from tests.oracle.memory import MemoryStore


def journal(version: str = "2026-10-01", **members: Any) -> dict[str, Any]:
    return copy.deepcopy(JOURNAL_RAW) | {"declaration_version": version} | members


@pytest.fixture
def store() -> RecordStore:
    store = MemoryStore()
    declare(store, journal(), 1)
    store.add_connection(connection(DIARY))
    return store


def test_the_same_content_again_is_known(store: RecordStore) -> None:
    assert declare(store, journal(), 2).is_new is False
    assert declare(store, journal("2"), 2).is_new is True


def test_a_known_version_never_changes_its_content(store: RecordStore) -> None:
    with pytest.raises(DeclarationConflict):
        declare(store, journal(display={"name": "Other"}), 2)


def test_one_connector_key_belongs_to_one_source(store: RecordStore) -> None:
    other = {"kind": "connector", "id": "https://other.example/journal"}
    with pytest.raises(DeclarationConflict):
        declare(store, journal("2", source=other), 2)
    with pytest.raises(DeclarationConflict):
        declare(store, journal("2", connector_key="diary"), 2)


@pytest.mark.parametrize("change", [{"primary_key": ["created_at"]}, {"semantics": "append_only"}])
def test_key_and_semantics_of_a_stream_with_records_stand(
    store: RecordStore, change: dict[str, Any]
) -> None:
    raw = journal("2")
    raw["streams"][0] |= change
    raw["streams"][0]["query"]["expand"] = []
    declare(store, raw | {"declaration_version": "before"}, 2)
    declare(store, journal("back"), 3)
    write(store, DIARY, "entries", ENTRIES)
    with pytest.raises(DeclarationIncompatible):
        declare(store, raw, 4)


def test_streams_may_come_and_go(store: RecordStore) -> None:
    write(store, DIARY, "entries", ENTRIES)
    raw = journal("2", selection_presets=[])
    raw["streams"] = raw["streams"][1:]
    declare(store, raw, 2)
    with store.snapshot() as snapshot:
        assert [d.version for d in snapshot.declarations()] == ["2"]
        assert snapshot.stored_streams()[0].record_count == 3


def test_a_stream_that_comes_back_must_fit_the_keys_that_are_stored(store: RecordStore) -> None:
    write(store, DIARY, "entries", ENTRIES)
    dropped = journal("2", selection_presets=[])
    dropped["streams"] = dropped["streams"][1:]
    declare(store, dropped, 2)
    other = journal("3")
    other["streams"][0] |= {"primary_key": ["created_at"]}
    with pytest.raises(DeclarationIncompatible):
        declare(store, other, 3)
    assert declare(store, journal("4"), 4).declaration.version == "4"


def test_a_broken_declaration_changes_nothing(store: RecordStore) -> None:
    with pytest.raises(InvalidDeclaration):
        declare(store, b"{}", 2)
    with store.snapshot() as snapshot:
        assert [d.version for d in snapshot.declarations()] == ["2026-10-01"]
