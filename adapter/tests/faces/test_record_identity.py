from base64 import b64encode

import pytest

from pdpp_mcp_server.faces.record_identity import (
    event_time,
    happened_at,
    record_address,
    record_title,
    record_url,
    safe_url,
)
from pdpp_mcp_server.handles import RecordRef

origin = "https://me.example"
record = RecordRef("cin_a", "messages", "a/b")


def test_the_first_title_wins_and_is_one_clean_line() -> None:
    assert record_title({}, {"name": " A\n\u202eB "}, record, "x") == "A B"
    assert record_title({"title": ""}, {"title": 7, "subject": "S"}, record, "x") == "S"
    assert len(record_title({}, {"title": "x" * 900}, record, "x")) == 160


def test_without_a_title_it_is_source_stream_and_event_time() -> None:
    wrapper = {"display_name": "Mail", "emitted_at": "2026-07-01", "sent_at": "2026-01-01"}
    assert record_title(wrapper, {}, record, "x") == "Mail / messages / 2026-01-01"
    assert record_title({"connector_key": "gmail"}, {}, record, "x") == "gmail / messages"
    assert record_title({}, {}, None, "the id") == "the id"


def test_encoded_bytes_are_no_title() -> None:
    encoded = b64encode(bytes(range(256))).decode()
    assert record_title({}, {"title": encoded, "subject": "S"}, record, "x") == "S"


def test_an_address_is_the_payloads_the_servers_or_built() -> None:
    assert (
        record_address(origin, {}, {"url": "https://a.example/x"}, record) == "https://a.example/x"
    )
    stated = {"record_url": "/v1/streams/messages/records/x"}
    found = record_address(origin, stated, {"url": "javascript:alert(1)"}, record)
    assert found == f"{origin}/v1/streams/messages/records/x?connection_id=cin_a"
    built = record_address(origin, {}, {}, record)
    assert built == f"{origin}/v1/streams/messages/records/a%2Fb?connection_id=cin_a"
    long = record_address(origin, {}, {}, RecordRef("cin_a", "messages", "x" * 3_000))
    assert long is not None
    assert long.startswith("pdpp://record/")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example/",
        "https://",
        "https://user@a.example/",
        "https://a.example/\u202e",
        "https://a.example/ b",
        "https://a.example/" + "x" * 2_000,
        "http://[broken",
        7,
        None,
    ],
)
def test_only_plain_web_addresses_are_safe(url: object) -> None:
    assert safe_url(url) is None


@pytest.mark.parametrize(
    ("key", "segment"), [("a/b", "a%2Fb"), ("..", "~b64.Li4"), (".", "~b64.Lg")]
)
def test_the_address_of_a_record_is_one_that_no_path_damages(key: str, segment: str) -> None:
    address = record_url("https://me.example", RecordRef("cin_a", "messages", key))
    assert address == (
        f"https://me.example/v1/streams/messages/records/{segment}?connection_id=cin_a"
    )


def test_when_a_record_was_taken_in_is_not_when_it_happened() -> None:
    taken_in = {"emitted_at": "2026-11-27T22:33:46Z"}
    assert event_time(taken_in, {}) == taken_in["emitted_at"]
    assert happened_at(taken_in, {}) is None
    assert happened_at(taken_in, {"sent_at": "2026-01-01"}) == "2026-01-01"
