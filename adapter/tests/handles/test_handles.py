from base64 import urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.handles import (
    BlobRef,
    RecordRef,
    WindowRef,
    blob_uri,
    format_id,
    parse_blob_handle,
    parse_id,
    parse_window_handle,
    record_uri,
    spells_connection,
    window_uri,
)
from pdpp_mcp_server.rs_client.json_values import compact

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
streams = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,20}", fullmatch=True)
connections = st.none() | texts


@settings(max_examples=200)
@given(connections, streams, texts)
def test_every_id_reads_back_to_its_parts(connection: str | None, stream: str, key: str) -> None:
    record = RecordRef(connection, stream, key)
    assert parse_id(format_id(record)) == record
    assert parse_id(record_uri(record)) == record


@settings(max_examples=100)
@given(connections, streams, texts, texts, st.integers(0, 10**9), st.integers(1, 16_384))
def test_windows_and_blobs_read_back(
    connection: str | None, stream: str, key: str, field: str, offset: int, limit: int
) -> None:
    window = WindowRef(RecordRef(connection, stream, key), field, offset, limit, "sha256:ab")
    assert parse_window_handle(window_uri(window).rpartition("/")[2]) == window
    if key not in {".", ".."}:
        blob = BlobRef(connection, key)
        assert parse_blob_handle(blob_uri(blob).rpartition("/")[2]) == blob


@settings(max_examples=200)
@given(st.text(max_size=80))
def test_any_text_is_an_id_or_our_refusal(text: str) -> None:
    assert attempt(text) in {"read", "invalid_id"}


def test_plain_parts_are_spelled_out() -> None:
    assert format_id(RecordRef("cin_a", "messages", "m:8 x")) == "cin_a/messages:m:8 x"
    assert format_id(RecordRef(None, "messages", "m8")) == "messages:m8"


@pytest.mark.parametrize("key", ["a/b", "..", ".", "a\\b", " m", "%2e%2e", "x\ny", "\u202ex"])
def test_keys_outside_the_grammar_are_uris(key: str) -> None:
    shown = format_id(RecordRef("cin_a", "messages", key))
    assert shown.startswith("pdpp://record/")
    assert not spells_connection(shown)


def test_a_changed_handle_is_refused() -> None:
    uri = record_uri(RecordRef("cin_a", "messages", "m8"))
    for at in range(len("pdpp://record/"), len(uri)):
        changed = uri[:at] + ("A" if uri[at] != "A" else "B") + uri[at + 1 :]
        assert attempt(changed) == "invalid_id" or record_uri(parse_id(changed)) == changed


def handle(kind: str, **members: Any) -> str:
    """A handle with right members in the right order, whatever they hold."""
    body = {"v": 1, "kind": kind, **members}
    return urlsafe_b64encode(compact(body).encode()).decode().rstrip("=")


where: dict[str, Any] = {"connection_id": "cin_a", "stream": "messages", "record_id": "m8"}
window: dict[str, Any] = {**where, "field_path": "body", "offset_chars": 0, "limit_chars": 9}
wrong_records = [
    {"connection_id": ""},
    {"connection_id": 7},
    {"stream": 7},
    {"stream": "a/b"},
    {"stream": ".."},
    {"stream": ""},
    {"record_id": ""},
    {"record_id": 7},
]
wrong_windows: list[dict[str, Any]] = [
    {"field_path": ""},
    {"field_path": 7},
    {"digest": 7},
    {"offset_chars": -1},
    {"offset_chars": "0"},
    {"limit_chars": 0},
    {"limit_chars": True},
    *wrong_records,
]


@pytest.mark.parametrize("wrong", wrong_windows)
def test_a_handle_whose_parts_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    assert parse_window_handle(handle("field-window", **window)).limit_chars == 9
    with pytest.raises(ToolError, match="invalid_id"):
        parse_window_handle(handle("field-window", **{**window, **wrong}))
    if wrong in wrong_records:
        assert attempt(f"pdpp://record/{handle('record', **{**where, **wrong})}") == "invalid_id"


@pytest.mark.parametrize("blob", ["", ".", "..", 7, None])
def test_a_blob_handle_names_a_blob(blob: Any) -> None:
    assert parse_blob_handle(handle("blob", connection_id=None, blob_id="b")).blob_id == "b"
    with pytest.raises(ToolError, match="invalid_id"):
        parse_blob_handle(handle("blob", connection_id=None, blob_id=blob))


def test_a_handle_of_another_kind_version_or_length_is_refused() -> None:
    assert attempt(f"pdpp://record/{handle('record', **where)}") == "read"
    longest = {**where, "record_id": "x" * 9_000}
    for text in (
        handle("blob", **where),
        handle("record", **where, extra=1),
        handle("record", **longest),
        handle("record", **where) + "é",
        "",
    ):
        assert attempt(f"pdpp://record/{text}") == "invalid_id"


def test_a_part_that_is_no_unicode_is_refused() -> None:
    assert attempt("cin_a/messages:\ud800") == "invalid_id"


def attempt(text: str) -> str:
    try:
        parse_id(text)
    except ToolError as error:
        return error.code
    return "read"


def test_a_handle_has_one_spelling() -> None:
    body = '{"v":1,"kind":"record","connection_id":"cin_a","stream":"s","record_id":"r"}'
    for text in (body.replace(":", ": "), body.replace('"v":1', '"v":1.0')):
        spelled = urlsafe_b64encode(text.encode()).decode().rstrip("=")
        assert attempt(f"pdpp://record/{spelled}") == "invalid_id"
    plain = urlsafe_b64encode(body.encode()).decode()
    assert attempt(f"pdpp://record/{plain.rstrip('=')}") == "read"
    assert plain.endswith("=") is (attempt(f"pdpp://record/{plain}") == "invalid_id")
