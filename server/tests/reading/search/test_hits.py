import copy
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.grant import StreamGrant
from personal_server.reading import shown_hits
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    BANK,
    DIARY,
    ENTRIES,
    JOURNAL_RAW,
    LETTER_ENTRIES,
    LETTERS,
    NARROW,
    OWNER,
    authority_of,
    client,
    furnished,
    grant,
    member,
    package,
    stream_grant,
    write,
)

LATER = "2026-06-01T00:00:00Z"


def found(door: Door, query: str, *grants: Any) -> list[tuple[str, str]]:
    reply = door.get(f"/v1/search?{query}", client(*grants))
    return [(hit["connection_id"], hit["id"]) for hit in reply.data]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("rain", ["e1", "l1", "e2"]),
        ("RAIN", ["e1", "l1", "e2"]),
        ("heavy rain", ["e1"]),
        ('"heavy rain"', ["e1"]),
        ('"rain heavy"', []),
        ('"rain & wind', ["e1"]),
        ("ada@example.org", ["e2"]),
        ("example@ada.org", []),
        ("sno*", ["e2"]),
        ("sno", []),
        ("rain snow", ["e2"]),
        ("rain OR nothing", ["e1", "e3", "l1", "e2"]),
        ("rain -heavy", ["l1", "e2"]),
        ("-rain", ["e1", "l1", "e2"]),
        ("title:rain", ["l1", "e1"]),
        ("subject:rain", []),
        ("until</b>", ["e1"]),
        ("nothing", ["e3"]),
    ],
)
def test_all_terms_must_match_within_one_record(door: Door, text: str, keys: list[str]) -> None:
    assert [key for _, key in found(door, f"q={quote(text)}")] == keys


def test_hits_stand_in_the_order_of_time_where_that_is_asked(door: Door) -> None:
    newest = door.get("/v1/search?q=rain&sort=newest", client())
    times = [hit["authored_at"] for hit in newest.data]
    assert len(times) > 1
    assert times == sorted(times, reverse=True)
    oldest = door.get("/v1/search?q=rain&sort=oldest&limit=1", client())
    assert oldest.data[0]["id"] == newest.data[-1]["id"]
    assert newest.body["meta"]["count"] == {"kind": "none"}
    more = door.get(oldest.body["links"]["next"], client())
    assert more.data[0]["id"] == newest.data[-2]["id"]


@pytest.mark.timeout(60)
def test_a_later_page_is_read_from_the_state_that_is_open(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "records.db", readers=1)
    door = Door(furnished(SqlRecordStore(database, "owner", tmp_path / "blobs")))
    first = door.get("/v1/search?q=rain&limit=1", client())
    cursor = quote(first.body["next_cursor"])
    second = door.get(f"/v1/search?q=rain&limit=1&cursor={cursor}", client())
    assert (first.keys, second.keys) == (["e1"], ["l1"])
    database.close()


def test_a_later_page_shows_what_a_record_says_by_then(door: Door) -> None:
    """What its words weighed when the first page was found no longer tells where they all stand."""
    walks = [ENTRIES[0] | {"id": key, "body": f"We will walk {key}."} for key in ("w1", "w2")]
    write(door.store, DIARY, "entries", walks, LATER)
    first = door.get("/v1/search?q=walk&limit=1", client())
    [other] = {"w1", "w2"} - {*first.keys}
    changed = "We will walk along the river, as we have walked there every day."
    write(door.store, DIARY, "entries", [ENTRIES[0] | {"id": other, "body": changed}], LATER)
    second = door.get(first.body["links"]["next"], client())
    assert second.keys == [other]
    assert second.data[0]["evidence_excerpts"][0]["match_ranges"] == [[8, 12], [41, 47]]


def test_a_hit_is_lean_and_complete(door: Door) -> None:
    hit = door.get("/v1/search?q=heavy%20rain", client()).data[0]
    assert hit["snippet"] == {
        "field": "body",
        "text": "We walked home in <mark>heavy</mark> <mark>rain</mark> &amp; wind "
        "&lt;b&gt;until&lt;/b&gt; dark.",
    }
    assert hit["matched_fields"] == ["body", "title"]
    assert hit["evidence_excerpts"][0]["match_ranges"] == [[18, 23], [24, 28]]
    assert hit["title"] == "Rain"
    assert hit["authored_at"] == "2026-01-01T10:00:00Z"
    assert hit["record_url"] == f"/v1/streams/entries/records/e1?connection_id={DIARY}"
    assert hit["connector_id"] == hit["connector_key"] == "journal"
    assert "data" not in hit


def test_a_hit_for_a_caller_that_counts_says_nothing_twice(door: Door) -> None:
    whole = door.get("/v1/search?q=heavy%20rain", client()).data[0]
    lean = door.get("/v1/search?q=heavy%20rain&page_chars=9000", client()).data[0]
    twice = {"id", "record_key", "connector_id", "record_url", "snippet"}
    (excerpt,), (shown,) = whole["evidence_excerpts"], lean["evidence_excerpts"]
    assert excerpt.keys() - shown.keys() == {"object", "provenance", "end_chars", "truncated"}
    assert shown.items() <= excerpt.items()
    assert whole.keys() - lean.keys() == twice
    kept = {name: value for name, value in whole.items() if name not in twice}
    assert lean == {**kept, "evidence_excerpts": [shown]}
    newest = "/v1/search?q=heavy%20rain&sort=newest&page_chars=9000"
    assert door.get(newest, client()).data[0] == lean


def test_a_hit_quotes_what_its_title_does_not_say(door: Door) -> None:
    hit = door.get("/v1/search?q=rain", client()).data[0]
    assert hit["title"] == "Rain"
    assert hit["matched_fields"] == ["title", "body"]
    assert [each["field_path"] for each in hit["evidence_excerpts"]] == ["body"]
    assert hit["snippet"]["field"] == "body"
    narrow = stream_grant(fields=NARROW)
    hit = door.get("/v1/search?q=rain", client(narrow)).data[0]
    assert [each["field_path"] for each in hit["evidence_excerpts"]] == ["title"]
    long = ENTRIES[0] | {"title": "dull " * 60 + "rain"}
    write(door.store, DIARY, "entries", [long])
    hit = door.get(f"/v1/search?q=rain%20dull&connection_id={DIARY}", client()).data[0]
    assert [each["field_path"] for each in hit["evidence_excerpts"]] == ["title"]


def test_only_granted_fields_are_searched_and_ranked(door: Door) -> None:
    narrow = stream_grant(fields=NARROW)
    before = found(door, "q=rain", narrow)
    assert [key for _, key in before] == ["e1", "l1"]
    assert found(door, "q=heavy", narrow) == []
    noisy = LETTER_ENTRIES[0] | {"body": "rain " * 500}
    write(door.store, LETTERS, "entries", [noisy])
    assert found(door, "q=rain", narrow) == before


def test_hidden_records_do_not_count_as_frequency(door: Door) -> None:
    texts = {"new": "storm calm storm calm storm", "old": "calm storm calm storm calm"}
    times = {"new": "2026-01-02T00:00:00Z", "old": "2026-01-01T00:00:00Z"}
    pair = [{"id": key, "body": text, "created_at": times[key]} for key, text in texts.items()]
    write(door.store, DIARY, "entries", pair)
    two = stream_grant(resources=("new", "old"))
    before = found(door, "q=storm%20calm", two)
    assert [key for _, key in before] == ["new", "old"]
    more = [{"id": f"x{i}", "body": "storm", "created_at": times["old"]} for i in range(50)]
    write(door.store, DIARY, "entries", more)
    assert found(door, "q=storm%20calm", two) == before
    assert found(door, "q=storm%20calm") == before[::-1]


def test_a_title_is_shown_only_if_granted(door: Door) -> None:
    hit = door.get("/v1/search?q=heavy", client(stream_grant(fields=("id", "body")))).data[0]
    assert "title" not in hit
    assert "authored_at" not in hit


def test_on_the_first_page_each_matching_connection_has_a_place(door: Door) -> None:
    many = [
        {"id": f"r{i}", "title": "rain rain", "created_at": "2026-01-01T00:00:00Z"}
        for i in range(9)
    ]
    write(door.store, DIARY, "entries", many)
    reply = door.get("/v1/search?q=rain&limit=3", client())
    assert LETTERS in {hit["connection_id"] for hit in reply.data}
    assert [m["connection_id"] for m in reply.body["meta"]["source_mix"]] == [DIARY, LETTERS]
    seen = [(hit["connection_id"], hit["id"]) for hit in reply.data]
    while reply.body["has_more"]:
        reply = door.get(reply.body["links"]["next"], client())
        seen += [(hit["connection_id"], hit["id"]) for hit in reply.data]
    assert len(seen) == len(set(seen)) == 12


def test_meta_tells_how_much_was_searched(door: Door) -> None:
    meta = door.get("/v1/search?q=rain", client()).body["meta"]
    assert meta["count"] == {"kind": "exact", "value": 3}
    assert meta["count_accuracy"] == "exact"
    assert meta["recall"] == {
        "complete": True,
        "ranking_scope": "all_matches",
        "truncated": False,
        "ranked_candidate_count": 3,
        "candidate_window_limit": 2_000,
        "sources_searched_count": 2,
        "truncated_source_count": 0,
        "pending_index_count": 0,
    }


def test_beyond_the_candidate_window_the_count_is_a_lower_bound(door: Door) -> None:
    many = [
        {"id": f"r{i}", "title": "thunder", "created_at": "2026-01-01T00:00:00Z"}
        for i in range(2_001)
    ]
    write(door.store, DIARY, "entries", many)
    meta = door.get("/v1/search?q=thunder&limit=1", client()).body["meta"]
    assert meta["count"] == {"kind": "estimated", "value": 2_000}
    assert meta["count_accuracy"] == "lower_bound"
    assert meta["recall"]["complete"] is False
    assert meta["recall"]["ranking_scope"] == "candidate_window"
    assert meta["recall"]["truncated_source_count"] == 1


def test_a_package_is_told_about_its_members(door: Door) -> None:
    authority = authority_of(
        "mcp_package",
        member(grant(stream_grant(instance_ids=(DIARY,)))),
        member(grant(stream_grant(instance_ids=(BANK,)), grant_id="grt_2", key="banking")),
        member(grant(stream_grant(instance_ids=(LETTERS,)), grant_id="grt_3"), "grant_revoked"),
    )
    reply = door.get("/v1/search?q=rain", authority)
    assert {hit["grant_id"] for hit in reply.data} == {"grt_1", "grt_2"}
    package_meta = reply.body["meta"]["package"]
    assert (package_meta["member_count"], package_meta["searched_count"]) == (3, 2)
    assert package_meta["partial"] is True
    assert [m["count"] for m in package_meta["source_mix"]] == [1, 2]
    assert "source_mix" not in reply.body["meta"]


def test_streams_narrow_and_unknown_ones_are_refused(door: Door) -> None:
    grants = (stream_grant(), stream_grant("attachments"))
    assert [k for _, k in found(door, "q=photo&streams=attachments&limit=2", *grants)]
    assert found(door, "q=photo&streams=entries", *grants) == []
    refused = door.get("/v1/search?q=rain&streams=volumes", client())
    assert (refused.status, refused.code) == (403, "grant_stream_not_allowed")
    assert refused.error["param"] == "streams"
    assert door.get("/v1/search?q=rain&streams=nowhere", OWNER).code == "not_found"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ("invalid_request", "q")),
        ("q=", ("invalid_request", "q")),
        ("q=%20", ("invalid_request", "q")),
        ("q=%26%20%2D", ("invalid_request", "q")),
        (f"q={'a' * 1025}", ("invalid_request", "q")),
        (f"q={'+'.join(f'a{n}' for n in range(33))}", ("invalid_request", "q")),
        ("q=rain&filter[title]=Rain", ("invalid_request", "filter")),
        ("q=rain&filter[title]=Rain&streams=entries,volumes", ("invalid_request", "filter")),
        ("q=rain&vector=1", ("invalid_request", "vector")),
        ("q=rain&fields=title", ("invalid_request", "fields")),
        ("q=rain&sort=title", ("invalid_request", "sort")),
        ("q=rain&mode=lexical", ("unsupported_search_mode", "mode")),
        ("q=rain&limit=0", ("invalid_request", "limit")),
        ("q=rain&cursor=x", ("invalid_cursor", "cursor")),
        ("q=rain&streams=entries&filter[nowhere]=1", ("unknown_field", "filter[nowhere]")),
        ("q=rain&streams=entries&filter[pinned]=1", ("invalid_filter", "filter[pinned]")),
    ],
)
def test_bad_searches_name_the_parameter(door: Door, query: str, expected: tuple[str, str]) -> None:
    reply = door.get(f"/v1/search?{query}", client(stream_grant(), stream_grant("volumes")))
    assert (reply.status, reply.code, reply.error["param"]) == (400, *expected)


def test_a_filter_skips_sources_that_cannot_apply_it(door: Door) -> None:
    narrow = stream_grant("entries", (BANK,), fields=NARROW)
    authority = package(
        grant(stream_grant(instance_ids=(DIARY,))), grant(narrow, grant_id="grt_2", key="banking")
    )
    reply = door.get("/v1/search?q=rain&streams=entries&filter[pinned]=true", authority)
    assert [hit["connection_id"] for hit in reply.data] == [DIARY]
    assert reply.body["meta"]["warnings"][0]["connection_id"] == BANK
    hidden = door.get(
        "/v1/search?q=rain&streams=entries&filter[pinned]=true",
        client(stream_grant(fields=NARROW)),
    )
    assert hidden.code == "field_not_granted"


def test_a_filter_that_is_not_granted_is_refused_where_nothing_is_searched(door: Door) -> None:
    unsearchable = client(stream_grant(fields=("id", "created_at")))
    reply = door.get("/v1/search?q=rain&streams=entries&filter[pinned]=true", unsearchable)
    assert (reply.status, reply.code) == (403, "field_not_granted")
    reply = door.get("/v1/search?q=rain&streams=entries&filter[nowhere]=true", unsearchable)
    assert (reply.status, reply.code) == (400, "unknown_field")


def test_a_search_that_finds_nothing_is_entered_too(door: Door) -> None:
    reply = door.get("/v1/search?q=nowhere", client())
    assert reply.data == []
    assert [(d.fields, d.record_count) for d in reply.disclosed] == [((), 0)]


def test_a_page_of_hits_ends_where_much_text_was_looked_at(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = door.get("/v1/search?q=rain", client()).keys
    monkeypatch.setattr(shown_hits, "PAGE_TEXT_CHARS", 1)
    found: list[str] = []
    target: str | None = "/v1/search?q=rain"
    while target:
        page = door.get(target, client())
        assert len(page.keys) == 1
        found += page.keys
        target = page.body["links"].get("next")
    assert found == whole


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_modes_that_are_not_installed_say_so(door: Door, mode: str) -> None:
    reply = door.get(f"/v1/search/{mode}?q=rain", client())
    assert (reply.status, reply.code) == (400, "unsupported_search_mode")
    assert reply.error["param"] == "mode"
    assert reply.error["allowed_values"] == ["auto", "words"]


def test_a_ranking_that_is_gone_is_made_again_while_it_is_the_same(door: Door) -> None:
    whole = door.get("/v1/search?q=rain&limit=100", client()).keys
    target = door.get("/v1/search?q=rain&limit=1", client()).body["links"]["next"]
    door.ports.rankings.forget()
    assert door.get(target.replace("limit=1", "limit=5"), client()).keys == whole[1:]
    door.ports.rankings.forget()
    write(door.store, LETTERS, "entries", ["l1"], "2026-06-01T00:00:00Z")
    reply = door.get(target, client())
    assert (reply.status, reply.code) == (410, "cursor_expired")
    assert (reply.error["param"], reply.error["recovery"]) == ("cursor", {"cursor": None})


def test_later_pages_pass_over_what_is_gone_or_no_longer_matches(door: Door) -> None:
    target = door.get("/v1/search?q=rain&limit=1", client()).body["links"]["next"]
    write(door.store, LETTERS, "entries", ["l1"], "2026-06-01T00:00:00Z")
    reply = door.get(f"{target}&limit=5".replace("limit=1&", ""), client())
    assert reply.keys == ["e2"]
    write(door.store, DIARY, "entries", [ENTRIES[1] | {"body": "dry"}], "2026-06-02T00:00:00Z")
    assert door.get(f"{target}".replace("limit=1", "limit=5"), client()).keys == []


def test_a_search_cursor_belongs_to_its_search(door: Door) -> None:
    cursor = quote(door.get("/v1/search?q=rain&limit=1", client()).body["next_cursor"])
    for target in (
        f"/v1/search?q=snow&cursor={cursor}",
        f"/v1/search?q=rain&streams=entries&cursor={cursor}",
        f"/v1/search?q=rain&connection_id={DIARY}&cursor={cursor}",
    ):
        assert door.get(target, client()).code == "invalid_cursor"
    changed = door.get(f"/v1/search?q=rain&cursor={cursor}", client(stream_grant(fields=NARROW)))
    assert changed.error["recovery"] == {"cursor": None}


def test_what_was_shown_is_what_is_disclosed(door: Door) -> None:
    reply = door.get("/v1/search?q=rain", client())
    shown = [(d.source.connection_id, d.fields, d.record_count) for d in reply.disclosed]
    fields = ("title", "body", "created_at")
    assert shown == [(DIARY, fields, 2), (LETTERS, fields, 1)]


def test_a_hit_in_a_file_names_its_record_as_far_as_that_is_granted() -> None:
    raw = copy.deepcopy(JOURNAL_RAW)
    (declared,) = (each for each in raw["streams"] if each["name"] == "attachments")
    relation = {"name": "entry", "stream": "entries", "foreign_key": "entry_id"}
    declared["relationships"] = [relation | {"foreign_key_on": "self", "cardinality": "has_one"}]
    journal = parse_declaration(raw)
    door = Door(furnished())

    def parents(*streams: StreamGrant) -> list[object]:
        reply = door.get("/v1/search?q=photo&limit=1", client(*streams, declared=journal))
        return [hit.get("parent") for hit in reply.data]

    files, names = stream_grant("attachments"), ("id", "filename", "blob_ref")
    assert parents(stream_grant(), files) == [{"stream": "entries", "record_id": "e1"}]
    assert parents(files) == [None]
    assert parents(stream_grant(), stream_grant("attachments", fields=names)) == [None]
    assert parents(stream_grant(instance_ids=(LETTERS,)), files) == [None]


def test_a_search_asked_again_shows_what_was_written_since(door: Door) -> None:
    narrow = stream_grant(fields=NARROW)

    def keys() -> tuple[list[str], list[str]]:
        """For all fields, and for few."""
        both = found(door, "q=rain"), found(door, "q=rain", narrow)
        return [key for _, key in both[0]], [key for _, key in both[1]]

    before = keys()
    assert keys() == before
    newer = ENTRIES[0] | {"id": "e9", "title": "Rain again", "body": "dry"}
    write(door.store, DIARY, "entries", [newer])
    assert all("e9" in each for each in keys())
    write(door.store, DIARY, "entries", [newer | {"title": "Sun", "body": "rain"}])
    assert ["e9" in each for each in keys()] == [True, False]
    write(door.store, DIARY, "entries", ["e9"])
    assert keys() == before
