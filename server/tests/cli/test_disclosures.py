from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from personal_server.domain.disclosure import DENIED, SERVED, AskedDetail, DisclosureEntry


def entry(number: int, **members: Any) -> DisclosureEntry:
    facts: dict[str, Any] = {
        "disclosure_id": f"dsc_{number}",
        "subject_id": "own_test",
        "at_ns": 1_795_000_000_000_000_000 + number,
        "request_id": f"req_{number}",
        "outcome": SERVED,
        "token_kind": "client",
        "channel": "mcp",
        "route": "records",
        "client_id": "local_my-agent",
        "grant_id": "grt_1",
        "tool": "query_records",
        "stream": "messages",
        "fields": ("id", "subject"),
        "record_count": 12,
        "size_bytes": 3_456,
    }
    return DisclosureEntry(**{**facts, **members})


def test_what_was_read_is_a_readable_table(terminal: Any) -> None:
    refusal = entry(2, outcome=DENIED, error_code="field_not_granted", fields=(), record_count=0)
    terminal.house.disclosures.append_disclosures([entry(1), refusal])
    assert terminal.run("disclosures") == 0
    _, refused, served = terminal.out.splitlines()
    assert {"field", "not", "granted"} <= set(refused.split())
    assert "query_records" in served
    assert "3,456" in served
    assert "id, subject" in served


def test_in_a_narrow_terminal_each_read_is_one_line(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = tuple(f"field_{number}" for number in range(19))
    rest = entry(2, channel="rest", tool=None, route="/v1/streams/{stream}/records", fields=fields)
    terminal.house.disclosures.append_disclosures([entry(1), rest])
    monkeypatch.setenv("COLUMNS", "80")
    assert terminal.run("disclosures") == 0
    _, second, first = terminal.out.splitlines()
    assert second.split()[4:] == ["rest", "records", "messages", "12", "19"]
    assert first.split()[4:] == ["query_records", "messages", "12", "2"]


def test_in_a_narrow_terminal_no_name_is_broken(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = entry(1, outcome=DENIED, error_code="field_not_granted", fields=())
    window = replace(refusal, tool="read_record_field", stream="transactions")
    terminal.house.disclosures.append_disclosures([window])
    monkeypatch.setenv("COLUMNS", "80")
    assert terminal.run("disclosures") == 0
    words = {"read_record_field", "transactions", "field", "not", "granted"}
    assert words <= set(terminal.out.split())


def test_entries_can_be_narrowed_and_counted_out(terminal: Any) -> None:
    terminal.house.disclosures.append_disclosures(
        [entry(1), entry(2, grant_id="grt_2"), entry(3, stream="payments")]
    )
    assert [e["request_id"] for e in terminal.json("disclosures", "--limit", "2")] == [
        "req_3",
        "req_2",
    ]
    assert [e["request_id"] for e in terminal.json("disclosures", "--grant", "grt_2")] == ["req_2"]
    assert terminal.json("disclosures", "--stream", "nothing") == []
    assert terminal.run("disclosures", "--limit", "0") == 64


def test_without_entries_it_says_so(terminal: Any) -> None:
    assert terminal.run("disclosures") == 0
    assert terminal.json("disclosures") == []


SEARCH = AskedDetail(b"s" * 32, "/v1/search?q=rent+paid&filter%5Bsize%5D%5Bgte%5D=3", ("a/b", "c"))


def test_one_line_says_what_was_asked_and_which_records_were_given(terminal: Any) -> None:
    log = terminal.house.disclosures
    log.append_disclosures([entry(1), entry(2, detail=SEARCH, connection_id="cin_1")])
    assert terminal.run("disclosures", "--line", "2") == 0
    assert {"rent", "paid", "size", "3", "a/b", "c"} <= set(terminal.out.split())
    assert terminal.run("disclosures", "--line", "1") == 0
    (unkept,) = terminal.json("disclosures", "--line", "1")
    assert "asked" not in unkept
    (shown,) = terminal.json("disclosures", "--line", "2")
    assert (shown["number"], shown["asked"], shown["keys"]) == (2, SEARCH.asked, ["a/b", "c"])
    assert terminal.run("disclosures", "--line", "3") == 5


def test_it_says_which_reads_gave_a_record_away(terminal: Any) -> None:
    given = entry(2, detail=SEARCH, connection_id="cin_1")
    terminal.house.disclosures.append_disclosures([entry(1), given, entry(3, detail=SEARCH)])
    found = terminal.json("disclosures", "--record", "cin_1/messages/a/b")
    assert [each["number"] for each in found] == [2]
    assert terminal.run("disclosures", "--record", "cin_1/messages/b") == 0
    assert terminal.json("disclosures", "--record", "cin_1/messages/b") == []
    assert terminal.run("disclosures", "--record", "cin_1/messages") == 64
