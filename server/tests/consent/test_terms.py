"""Choices only ever narrow: in streams, connections, fields, records and time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_kernel.declaration import Stream
from pdpp_kernel.oauth_errors import InvalidAuthorizationDetails, NotANarrowing
from personal_server.consent.choices import Choices, EntryChoice, StreamChoice, parse_choices
from personal_server.consent.offers import EntryOffer, StreamOffer, resolve_request
from personal_server.consent.selections import parse_selections
from personal_server.consent.terms import Terms, narrow
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.grant import StreamGrant

SAMPLE = Path(__file__).parents[1] / "samples" / "journal.json"
JOURNAL = "https://registry.pdpp.dev/connectors/journal"
DECLARATION = parse_declaration(SAMPLE.read_bytes())
NOW = 1_700_000_000 * 10**9
DAY = 86_400 * 10**9


def connection(number: int) -> Connection:
    return Connection(f"cin_{number}", "journal", JOURNAL, None, ConnectionStatus.ACTIVE, 0, 0)


def entry(streams: list[dict[str, Any]], mode: str = "continuous") -> dict[str, Any]:
    return {
        "type": "https://pdpp.dev/data-access",
        "source": {"id": JOURNAL},
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": mode,
        "streams": streams,
    }


def offered(entries: list[dict[str, Any]], connections: int = 1) -> Any:
    held = [connection(number) for number in range(connections)]
    return resolve_request(parse_selections(entries), {JOURNAL: DECLARATION}, held)


def one(stream: dict[str, Any], choice: StreamChoice, held: int = 1, /, **over: Any) -> Terms:
    offers = offered([entry([{"name": "entries", **stream}])], held)
    entries = {0: EntryChoice(keep=True, streams={"entries": choice}, **over)}
    return narrow(offers, Choices(entries=entries), NOW)


def granted(terms: Terms) -> StreamGrant:
    return terms.entries[0].streams[0]


def test_everything_stays_unless_something_is_chosen() -> None:
    grant = granted(one({}, StreamChoice()))
    assert grant.fields == tuple(DECLARATION.streams["entries"].properties)
    assert grant.time_constraint is None


def test_fields_are_what_was_ticked_and_the_floor() -> None:
    grant = granted(one({}, StreamChoice(fields=frozenset({"title"}))))
    assert set(grant.fields) == {"title", *DECLARATION.streams["entries"].floor}


def test_time_is_tightened_and_never_loosened() -> None:
    asked = {"time_range": {"since": "2026-01-01", "until": "2026-06-01"}}
    grant = granted(one(asked, StreamChoice(since="2026-02-01")))
    assert grant.time_constraint is not None
    assert grant.time_constraint.since == "2026-02-01T00:00:00Z"
    assert grant.time_constraint.until == "2026-06-01T00:00:00Z"
    for wider in (
        StreamChoice(since="2025-12-31"),
        StreamChoice(until="2026-06-02"),
        StreamChoice(since="2026-06-01"),
        StreamChoice(since="yesterday"),
    ):
        with pytest.raises(NotANarrowing):
            one(asked, wider)


@pytest.mark.parametrize(
    "choice",
    [
        StreamChoice(fields=frozenset({"ssn"})),
        StreamChoice(resources=frozenset({"m2"})),
    ],
)
def test_what_was_not_asked_for_is_refused(choice: StreamChoice) -> None:
    with pytest.raises(NotANarrowing):
        one({"fields": ["title"], "resources": ["m1"]}, choice)


def limits_of(grant: StreamGrant) -> dict[str, tuple[object, ...]]:
    return {limit.field: limit.values for limit in grant.only}


def test_content_limits_are_added_and_kept() -> None:
    field = "word_count"
    chosen = granted(one({}, StreamChoice(only={field: ("7", "7", "0")})))
    assert limits_of(chosen) == {field: (7, 0)}
    asked = {"only": {field: [1, 2], "pinned": ["true"]}}
    assert limits_of(granted(one(asked, StreamChoice()))) == {field: (1, 2), "pinned": (True,)}
    fewer = one(asked, StreamChoice(only={field: ("2",)}))
    assert limits_of(granted(fewer)) == {field: (2,), "pinned": (True,)}
    for wider in ({field: ("3",)}, {"pinned": ("false",)}, {field: ("2", "3")}):
        with pytest.raises(NotANarrowing):
            one(asked, StreamChoice(only=wider))


@pytest.mark.parametrize(
    "only",
    [
        {"nothing": ("a",)},
        {"id": ("e1",)},
        {"body": ("a",)},
        {"labels": ("a",)},
        {"created_at": ("2026-01-01T00:00:00Z",)},
        {"pinned": ("yes",)},
        {"word_count": ("1.5",)},
        {"word_count": ("9" * 30,)},
        {"word_count": tuple(str(n) for n in range(1_001))},
    ],
)
def test_what_no_record_can_be_limited_by_is_refused(only: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(NotANarrowing):
        one({}, StreamChoice(only=only))


def test_connections_are_chosen_among_the_eligible() -> None:
    assert one({}, StreamChoice(), 2).missing[0].what == "connection"
    chosen = one({}, StreamChoice(), 2, connections=frozenset({"cin_1"}))
    assert granted(chosen).instance_ids == ("cin_1",)
    with pytest.raises(NotANarrowing):
        one({}, StreamChoice(), 2, connections=frozenset({"cin_9"}))
    named = one({"instance_ids": ["cin_0", "cin_1"]}, StreamChoice(), 2)
    assert granted(named).instance_ids == ("cin_0", "cin_1")


def test_records_are_kept_or_something_is_missing() -> None:
    asked = {"resources": ["m1", "m2"]}
    kept = granted(one(asked, StreamChoice(resources=frozenset({"m2"}))))
    assert kept.resources == ("m2",)
    none = one(asked, StreamChoice(resources=frozenset()))
    assert none.missing[0].what == "record"


def test_optional_streams_are_wanted_and_required_ones_always_there() -> None:
    streams = [{"name": "entries"}, {"name": "volumes", "necessity": "optional"}]
    terms = narrow(offered([entry(streams)]), Choices(), NOW)
    assert [stream.name for stream in terms.entries[0].streams] == ["entries"]
    nothing = narrow(offered([entry(streams[1:])]), Choices(), NOW)
    assert nothing.missing[0].what == "stream"


@pytest.mark.parametrize(
    ("asked", "choices", "mode", "days"),
    [
        ("continuous", Choices(), "continuous", 90),
        ("continuous", Choices(expiry="30d"), "continuous", 30),
        ("continuous", Choices(expiry="1y"), "continuous", 365),
        ("continuous", Choices(expiry="none"), "continuous", None),
        ("continuous", Choices(mode="single_use"), "single_use", 1),
        ("continuous", Choices(mode="single_use", expiry="90d"), "single_use", 1),
        ("single_use", Choices(), "single_use", 1),
        ("single_use", Choices(expiry="none"), "single_use", 1),
    ],
)
def test_how_long(asked: str, choices: Choices, mode: str, days: int | None) -> None:
    terms = narrow(offered([entry([{"name": "entries"}], asked)]), choices, NOW)
    assert terms.access_mode == mode
    assert terms.expires_at_ns == (None if days is None else NOW + days * DAY)


@pytest.mark.parametrize(
    ("asked", "choices"),
    [
        ("single_use", Choices(mode="continuous")),
        ("continuous", Choices(mode="always")),
        ("continuous", Choices(expiry="1h")),
        ("continuous", Choices(expiry="10y")),
        ("continuous", Choices(entries={3: EntryChoice(keep=True)})),
        (
            "continuous",
            Choices(entries={0: EntryChoice(keep=True, streams={"secrets": StreamChoice(True)})}),
        ),
    ],
)
def test_a_wider_mode_end_entry_or_stream_is_refused(asked: str, choices: Choices) -> None:
    with pytest.raises(NotANarrowing):
        narrow(offered([entry([{"name": "entries"}], asked)]), choices, NOW)


def test_a_form_is_read_with_encoded_stream_names() -> None:
    choices = parse_choices(
        [
            ("_csrf", "x"),
            ("keep.0", "1"),
            ("conn.0", "cin_0"),
            ("conn.0", "cin_1"),
            ("stream.0.a%2Eb", "1"),
            ("fieldset.0.a%2Eb", "1"),
            ("field.0.a%2Eb", "id"),
            ("since.0.a%2Eb", " 2026-01-01 "),
            ("resource.0.a%2Eb", "k"),
            ("mode", "single_use"),
            ("expiry", ""),
            ("ai_training", "yes"),
            ("end", "grt_1"),
            ("end", "grt_1"),
        ]
    )
    stream = choices.entry(0).stream("a.b")
    assert stream == StreamChoice(True, frozenset({"id"}), "2026-01-01", "", frozenset({"k"}))
    assert choices.entry(0).connections == {"cin_0", "cin_1"}
    assert (choices.mode, choices.expiry, choices.ai_training) == ("single_use", None, True)
    assert choices.ends == ("grt_1",)
    with pytest.raises(NotANarrowing):
        parse_choices([("keep.-1", "1")])


# Never wider ----------------------------------------------------------------------------------
def is_window(found: Any) -> bool:
    return bool(found) and found.get("since", "0") < found.get("until", "9")


def name_of(found: Any) -> str:
    return found["name"]


def named(name: str, rest: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, **rest}


names = st.sampled_from([*DECLARATION.streams, "nothing"])
fields = st.sampled_from(
    sorted({name for s in DECLARATION.streams.values() for name in s.properties} | {"ssn"})
)
days = st.integers(1, 28).map(lambda day: f"2026-01-{day:02}")
ids = st.sampled_from(["cin_0", "cin_1", "cin_2", "cin_9"])
keys = st.sampled_from(["m1", "m2", "m3"])


def optional(**members: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=members)


time_ranges = optional(since=days, until=days).filter(is_window)
counts = st.integers(0, 3)
asked_limits = st.fixed_dictionaries(
    {"word_count": st.lists(counts, min_size=1, max_size=3, unique=True)}
)
wanted_streams: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.builds(
        named,
        names,
        optional(
            necessity=st.sampled_from(["required", "optional"]),
            instance_ids=st.lists(ids, min_size=1, max_size=3, unique=True),
            fields=st.lists(fields, min_size=1, max_size=4, unique=True),
            time_range=time_ranges,
            resources=st.lists(keys, min_size=1, max_size=3, unique=True),
            only=asked_limits,
        ),
    ),
    min_size=1,
    max_size=3,
    unique_by=name_of,
)
stream_choices = st.builds(
    StreamChoice,
    wanted=st.booleans(),
    fields=st.none() | st.frozensets(fields, max_size=4),
    since=st.just("") | days,
    until=st.just("") | days,
    resources=st.none() | st.frozensets(keys, max_size=3),
    only=st.dictionaries(
        st.sampled_from(["word_count", "pinned"]),
        st.lists(st.sampled_from(["0", "1", "2", "true"]), min_size=1, max_size=3).map(tuple),
        max_size=2,
    ),
)
owner_choices = st.builds(
    Choices,
    entries=st.dictionaries(
        st.integers(0, 1),
        st.builds(
            EntryChoice,
            keep=st.booleans(),
            connections=st.none() | st.frozensets(ids, max_size=3),
            streams=st.dictionaries(names, stream_choices, max_size=3),
        ),
        max_size=2,
    ),
    mode=st.sampled_from([None, "single_use", "continuous"]),
    expiry=st.sampled_from([None, "30d", "90d", "1y", "none", "1h", "24h"]),
)


@settings(max_examples=300)
@given(wanted_streams, st.sampled_from(["single_use", "continuous"]), owner_choices)
def test_terms_are_never_wider_than_the_request(
    streams: list[dict[str, Any]], mode: str, choices: Choices
) -> None:
    try:
        offers = offered([entry(streams, mode)], 3)
        terms = narrow(offers, choices, NOW)
    except (NotANarrowing, InvalidAuthorizationDetails):
        return
    asked = {stream["name"]: stream for stream in streams}
    for kept in terms.entries:
        assert isinstance(offers[0], EntryOffer)
        for grant in kept.streams:
            _assert_within(grant, offers[0].stream(grant.name), asked[grant.name])
        if not terms.missing:
            there = {grant.name for grant in kept.streams}
            assert {s.name for s in kept.offer.streams if s.required} <= there
    assert not (mode == "single_use" and terms.access_mode == "continuous")
    assert not (terms.access_mode == "single_use" and terms.expires_at_ns is None)


def _assert_within(grant: StreamGrant, offer: StreamOffer | None, asked: dict[str, Any]) -> None:
    assert offer is not None
    stream: Stream = DECLARATION.streams[grant.name]
    allowed = set(asked.get("fields", stream.properties)) | set(stream.floor)
    assert set(stream.floor) <= set(grant.fields) <= allowed
    assert list(grant.fields) == [name for name in stream.properties if name in grant.fields]
    assert grant.instance_ids
    assert set(grant.instance_ids) <= set(asked.get("instance_ids", offer.connections))
    if "resources" in asked:
        assert grant.resources
        assert set(grant.resources) <= set(asked["resources"])
    for field, values in asked.get("only", {}).items():
        assert set(limits_of(grant)[field]) <= set(values)
    if offer.time_range is not None:
        bound = grant.time_constraint
        assert bound is not None
        if offer.time_range.since_ns is not None:
            assert bound.since_ns is not None
            assert bound.since_ns >= offer.time_range.since_ns
        if offer.time_range.until_ns is not None:
            assert bound.until_ns is not None
            assert bound.until_ns <= offer.time_range.until_ns
