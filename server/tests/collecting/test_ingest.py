from __future__ import annotations

import itertools
import time
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import BodyTooLarge, ConnectionNotWritable
from personal_server.collecting.ingest import IngestResult, ingest
from personal_server.domain.connection import ConnectionStatus
from personal_server.enforcement.plans import RecordsPlan
from server.tests.storage.worlds import (
    FILES_STREAM,
    NOTES,
    NOTES_STREAM,
    declaration,
    furnish,
    note,
    scope,
)
from tests.oracle.memory import MemoryStore

AT = "2026-03-14T06:30:00Z"


@pytest.fixture
def store() -> MemoryStore:
    found = MemoryStore()
    furnish(found, "cin_a")
    return found


def line(data: dict[str, Any] | None = None, **members: Any) -> bytes:
    body = {"emitted_at": AT, **({"data": data} if data is not None else {}), **members}
    return orjson.dumps(body)


def run(store: MemoryStore, *lines: Any, stream: Any = NOTES_STREAM) -> IngestResult:
    numbers = itertools.count(1)
    return ingest(
        store,
        "cin_a",
        stream,
        lines,
        now_ns=1,
        new_receipt_id=lambda: f"rr_{next(numbers)}",
        run_id="run_1",
    )


def codes(result: IngestResult) -> list[tuple[int, str, str | None]]:
    return [(each.input_index, each.code, each.path) for each in result.rejections]


def test_good_lines_are_kept_and_bad_ones_are_receipted(store: MemoryStore) -> None:
    result = run(store, line(note("n1")), b"  ", b"{", line(note("n1")), line(note("n2")))
    assert codes(result) == [(1, "malformed_ndjson", None)]
    counts = (result.records_attempted, result.records_accepted, result.records_changed)
    assert counts == (4, 3, 2)
    ((_, receipt),) = store.rejections("cin_a", 10, None)
    assert (receipt.receipt_id, receipt.code, receipt.run_id) == (
        "rr_1",
        "malformed_ndjson",
        "run_1",
    )


def test_a_pattern_that_goes_back_without_end_fits_nothing(store: MemoryStore) -> None:
    patterned = orjson.loads(orjson.dumps(NOTES_STREAM.raw))
    patterned["schema"]["properties"]["title"] |= {"pattern": r"^(?=x|a)(a|a)*\1?$"}
    stream = replace(NOTES_STREAM, raw=patterned)
    begin = time.process_time()
    hostile = [line(note(f"n{n}", title="a" * 38 + "!")) for n in range(20)]
    result = run(store, line(note("good", title="aaaa")), *hostile, stream=stream)
    assert time.process_time() - begin < 1
    assert (result.records_accepted, len(result.rejections)) == (1, 20)


DEEP = "[" * 40 + "]" * 40


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        (b'{"a":"\xff"}', "invalid_utf8", None),
        (b"[1]", "malformed_ndjson", None),
        (b'{"data":{"id":"n1","labels":' + DEEP.encode() + b"}}", "malformed_ndjson", None),
        (b" " * (16 * 1024 * 1024) + b"{}", "line_too_large", None),
        (b"{}", "invalid_record", "/data"),
        (line(note("n1"), extra=1), "invalid_record", None),
        (line(note("n1"), op="merge"), "invalid_record", "/op"),
        (line(note("n1"), stream="files"), "invalid_record", "/stream"),
        (line(note("n1"), emitted_at="2026-03-14"), "invalid_record", "/emitted_at"),
        (line(note("n1"), emitted_at=None), "invalid_record", "/emitted_at"),
        (line(op="delete"), "invalid_record", "/key"),
        (line(note("n1"), op="delete", key="n1"), "invalid_record", "/data"),
        (line(note("n1"), key="n2"), "invalid_record_identity", "/key"),
        (line(note("n1"), key=["n2"]), "invalid_record_identity", "/key"),
        (line(note("")), "invalid_record_identity", "/key"),
        (line(note("a\nb")), "invalid_record_identity", "/key"),
        (line(note("x" * 1025)), "invalid_record_identity", "/key"),
        (line({"at": AT}), "invalid_record_identity", "/key"),
        (line({"id": 1.5, "at": AT}), "invalid_record_identity", "/key"),
        (line({"id": "n1"}), "record_schema_violation", ""),
        (line(note("n1", words="three")), "record_schema_violation", "/words"),
        (line(note("n1", at="yesterday")), "record_schema_violation", "/at"),
        (line(note("n1", day="2026-02-30")), "record_schema_violation", "/day"),
        (line(note("n1", secret=1)), "record_schema_violation", "/secret"),
        (line(note("n1", labels=["a\x00b"])), "record_schema_violation", "/labels/0"),
        (
            b'{"emitted_at":"' + AT.encode() + b'","data":{"id":"n1","at":"'
            b'2026-01-01T00:00:00Z","words":9223372036854775808}}',
            "record_schema_violation",
            None,
        ),
        (
            b'{"emitted_at":"' + AT.encode() + b'","data":{"id":"n1","at":"'
            b'2026-01-01T00:00:00Z","cost":-99999999999999999999}}',
            "record_schema_violation",
            None,
        ),
    ],
)
def test_each_fault_has_its_code(
    store: MemoryStore, text: bytes, code: str, path: str | None
) -> None:
    result = run(store, text, line(note("fine")))
    assert codes(result) == [(0, code, path)]
    assert result.records_changed == 1


def test_messages_never_quote_values(store: MemoryStore) -> None:
    result = run(store, line(note("n1", words="MARKER")), line(note("n2", at="MARKER")))
    assert not any("MARKER" in each.message for each in result.rejections)
    assert result.rejections[0].message == "expected integer or null"


def test_long_digits_are_fine_in_strings_and_fractions(store: MemoryStore) -> None:
    big = b'{"emitted_at":"2026-03-14T06:30:00Z","data":{"id":"n1","at":"2026-01-01T00:00:00Z",'
    result = run(store, big + b'"place":"99999999999999999999","cost":0.1234567890123456789012}}')
    assert codes(result) == []


def test_the_largest_integer_is_kept(store: MemoryStore) -> None:
    assert codes(run(store, line(note("n1", words=2**63 - 1)))) == []


def test_append_only_records_conflict(store: MemoryStore) -> None:
    one = {"id": "f1", "note_id": "n1"}
    result = run(
        store,
        line(one),
        line({**one, "number": 2}),
        line(one),
        line(op="delete", key="f1"),
        stream=FILES_STREAM,
    )
    assert [c[:2] for c in codes(result)] == [
        (1, "append_only_conflict"),
        (3, "append_only_conflict"),
    ]
    assert (result.records_accepted, result.records_changed) == (2, 1)


def test_a_whole_batch_again_changes_nothing(store: MemoryStore) -> None:
    lines = [line(note(f"n{i}")) for i in range(5)]
    assert run(store, *lines).records_changed == 5
    assert run(store, *lines).records_changed == 0
    with store.snapshot() as snapshot:
        assert snapshot.horizon == 5


def test_lines_may_be_objects(store: MemoryStore) -> None:
    result = run(
        store,
        {"emitted_at": AT, "data": note("n1")},
        {"emitted_at": AT, "data": note("n2", title="\ud800")},
    )
    assert codes(result) == [(1, "malformed_ndjson", None)]


def test_compound_keys_are_arrays_of_their_values(store: MemoryStore) -> None:
    days = {**NOTES, "name": "days", "primary_key": ["id", "at"], "relationships": []}
    days["query"] = {k: v for k, v in NOTES["query"].items() if k != "expand"}
    stream = declaration("2", [days]).streams["days"]
    data = note("n1")
    result = run(
        store,
        line(data, key=["n1", "2026-01-01T00:00:00Z"]),
        line(data, key='["n1","2026-01-01T00:00:00Z"]'),
        line(op="delete", key=["n1"]),
        line(op="delete", key=["n1", "2026-01-01T00:00:00Z"]),
        stream=stream,
    )
    assert codes(result) == [(2, "invalid_record_identity", "/key")]
    assert result.records_changed == 2


def test_too_many_lines_are_refused_whole(store: MemoryStore) -> None:
    with pytest.raises(BodyTooLarge):
        run(store, *(line(note(f"n{i}")) for i in range(10_001)))
    with store.snapshot() as snapshot:
        assert snapshot.count(RecordsPlan((scope("cin_a"),))) == 0


def test_a_revoked_connection_takes_nothing(store: MemoryStore) -> None:
    store.update_connection("cin_a", lambda c: replace(c, status=ConnectionStatus.REVOKED))
    with pytest.raises(ConnectionNotWritable):
        run(store, line(note("n1")))


def test_formats_other_than_times_are_words_only(store: MemoryStore) -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "format": "email"},
            "format": {"type": "string", "format": "date"},
        },
        "required": ["id"],
    }
    plain = {"name": "plain", "semantics": "mutable_state", "display": {"label": "Plain"}}
    chosen = {"fields": True, "resources": False}
    stream = declaration(
        "2", [{**plain, "schema": schema, "primary_key": ["id"], "selection": chosen}]
    ).streams["plain"]
    good = line({"id": "not an address", "format": "2026-01-01"})
    result = run(store, good, line({"id": "b", "format": "x"}), stream=stream)
    assert codes(result) == [(1, "record_schema_violation", "/format")]
