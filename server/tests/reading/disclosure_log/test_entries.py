"""Whom an entry names and what it says, of an answer and of a refusal."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import NotFound
from personal_server.domain.authority import ReadAuthority
from personal_server.domain.disclosure import Disclosed
from personal_server.reading.disclosure_log import (
    SALT_BYTES,
    EntrySecrets,
    ServedCall,
    denied_entry,
    served_entries,
)
from server.tests.resource_server.door import Counter
from server.tests.resource_server.journal import (
    DIARY,
    LETTERS,
    OWNER,
    client,
    grant,
    package,
    stream_grant,
)

CALL = ServedCall(client(), "list_records", "req_1", 7, stream="entries", asked="/v1/x?q=rain")
BOTH = package(
    grant(stream_grant(instance_ids=(DIARY,))),
    grant(stream_grant("volumes", (LETTERS,)), grant_id="grt_2"),
)


def secrets() -> EntrySecrets:
    return EntrySecrets(Counter())


def shown(authority: ReadAuthority) -> list[Disclosed]:
    return [
        Disclosed(source, ("id", "title"), count, ("k",) * count)
        for count, source in enumerate(authority.sources, start=1)
    ]


def test_each_source_that_contributed_has_an_entry_with_its_share_of_the_bytes() -> None:
    first, second = served_entries(CALL, shown(CALL.authority), 90, secrets())
    assert (first.connection_id, second.connection_id) == (DIARY, LETTERS)
    assert (first.record_count, second.record_count) == (1, 2)
    assert (first.size_bytes, second.size_bytes) == (30, 60)
    assert {each.outcome for each in (first, second)} == {"served"}
    assert (first.grant_id, first.connector_key, first.stream) == ("grt_1", "journal", "entries")
    assert (first.fields, first.client_id, first.at_ns) == (("id", "title"), "planner", 7)
    assert (first.request_id, first.route, first.token_kind) == ("req_1", "list_records", "client")
    assert first.disclosure_id != second.disclosure_id
    assert first.disclosure_id.removeprefix("dis_") == (1).to_bytes(12, "big").hex()


def test_what_disclosed_no_field_names_no_account_and_no_stream() -> None:
    (entry,) = served_entries(CALL, [Disclosed(CALL.authority.sources[0], (), 0)], 9, secrets())
    assert (entry.connector_key, entry.connection_id, entry.stream) == (None, None, None)
    assert (entry.grant_id, entry.size_bytes) == ("grt_1", 9)


def test_what_was_asked_lies_beside_the_entry_of_an_app_and_not_of_the_owner() -> None:
    (entry,) = served_entries(CALL, shown(CALL.authority)[:1], 1, secrets())
    assert entry.detail is not None
    assert (entry.detail.asked, entry.detail.keys) == ("/v1/x?q=rain", ("k",))
    assert len(entry.detail.salt) == SALT_BYTES == 32
    owner = replace(CALL, authority=OWNER)
    assert served_entries(owner, shown(OWNER)[:1], 1, secrets())[0].detail is None


@pytest.mark.parametrize(
    ("sent", "tool"),
    [
        (None, None),
        ("", None),
        ("search", "search"),
        ("read_" * 12 + "abcd", "read_" * 12 + "abcd"),
        ("read_" * 13, None),
        ("Search", None),
        ("search\n", None),
        ("a b", None),
    ],
)
def test_a_tool_is_named_where_its_name_is_one(sent: str | None, tool: str | None) -> None:
    entry = denied_entry(replace(CALL, tool=sent), NotFound("No."), secrets())
    assert (entry.tool, entry.channel) == (tool, "rest" if tool is None else "mcp")


@pytest.mark.parametrize(
    ("authority", "stream", "named", "grant_id"),
    [
        (client(), "entries", "entries", "grt_1"),
        (client(), "volumes", None, "grt_1"),
        (BOTH, "volumes", "volumes", None),
        (OWNER, None, None, None),
    ],
)
def test_a_refusal_names_a_stream_that_is_granted_and_the_only_grant(
    authority: ReadAuthority, stream: str | None, named: str | None, grant_id: str | None
) -> None:
    call = replace(CALL, authority=authority, stream=stream)
    entry = denied_entry(call, NotFound("No."), secrets())
    assert (entry.outcome, entry.error_code) == ("denied", "not_found")
    assert (entry.stream, entry.grant_id) == (named, grant_id)
    assert entry.package_id == authority.package_id
