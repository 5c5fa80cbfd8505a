"""Which visible records refer to a blob: by it, or by those that are picked."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from operator import methodcaller
from typing import Any

import pytest

from pdpp_kernel.values import instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import BlobPlan
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import database_of
from server.tests.storage.ports.asking import receive
from server.tests.storage.sql.agreement import Stores, assert_same, stored_twice
from server.tests.storage.sql.watched_reads import statements_read
from server.tests.storage.worlds import FILES, NOTES, condition, declaration, note, scope, write

DAYS = [f"2026-01-0{day}T00:00:00Z" for day in range(1, 8)]
CONTENTS = (b"first", b"second", b"nobody's")
BLOBS = [f"blob_sha256_{hashlib.sha256(each).hexdigest()}" for each in CONTENTS]


def declared() -> Any:
    """Notes with two fields of bytes."""
    raw = copy.deepcopy(NOTES)
    raw["schema"]["properties"]["cover"] = raw["schema"]["properties"]["blob_ref"]
    return declaration(streams=[raw, FILES])


DECLARED = declared()
STREAM = DECLARED.streams["notes"]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    made = [
        note(f"n{n}", at, mood=("calm", "glad")[n % 2], blob_ref={"blob_id": BLOBS[n % 2], "n": n})
        | ({"cover": {"blob_id": BLOBS[0]}} if n % 3 == 0 else {})
        for n, at in enumerate(DAYS)
    ]
    accounts: dict[str, list[Any]] = {"cin_a": [], "cin_b": []}
    with stored_twice(tmp_path_factory.mktemp("both"), accounts, DECLARED) as opened:
        for each in opened:
            for content in CONTENTS:
                receive(each, content)
            receive(each, CONTENTS[0], "cin_b")  # of the other it has no bytes
            write(each, "cin_a", made, stream=STREAM)
            write(each, "cin_b", made[3:], stream=STREAM)
        yield opened


SEEN: list[dict[str, Any]] = [
    {},
    {"window": TimeConstraint("at", instant_ns(DAYS[2]), instant_ns(DAYS[5]))},
    {"resources": frozenset({"n0", "n3", "n4", "n9"})},
    {"only": (condition("mood", "eq", "calm", caseless=True),)},
    {"fields": ("id", "at", "cover")},
    {"fields": ("id", "at", "blob_ref"), "resources": frozenset({"n1", "n6"})},
    {"fields": ("id", "at")},
]


@pytest.mark.parametrize("seen", SEEN)
def test_references_are_those_of_visible_records_and_granted_fields(
    stores: Stores, seen: dict[str, Any]
) -> None:
    scopes = tuple(scope(account, STREAM, **seen) for account in ("cin_a", "cin_b"))
    plans = [BlobPlan(scopes, blob) for blob in (*BLOBS, "blob_sha256_none")]
    assert_same(stores, (methodcaller("blob", plan) for plan in plans))


def test_a_reference_that_a_record_does_not_hold_is_none(store: SqlRecordStore) -> None:
    """As where a line is damaged."""
    blob = receive(store, CONTENTS[0])
    write(store, "cin_a", [note(f"n{n}", blob_ref={"blob_id": blob}) for n in range(2)])
    with database_of(store).write() as session:
        session.run("UPDATE blob_references SET field = 'cover' WHERE key = 'n1'")
    seen = scope(stream=STREAM)
    with store.snapshot() as snapshot:
        assert [each.key for each in snapshot.blob(BlobPlan((seen,), blob))] == ["n0"]


def test_records_that_are_picked_lead_to_their_references(
    store: SqlRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And elsewhere the references of the blob to their records."""
    write(store, "cin_a", [note("n1")])
    asked = statements_read(monkeypatch)
    with store.snapshot() as snapshot:
        for seen in SEEN[:4]:
            asked.clear()
            snapshot.blob(BlobPlan((scope("cin_a", STREAM, **seen),), BLOBS[0]))
            is_picked = "resources" in seen or "only" in seen
            assert ("FROM blob_references b" in asked[0].sql) is not is_picked
