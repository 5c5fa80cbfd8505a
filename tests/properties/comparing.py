"""One request at the server and at the reference; what must be equal."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Any, cast

import orjson
import pytest

from pdpp_kernel.values import NANOSECONDS, instant_ns
from personal_server.domain.authority import ReadAuthority, SourceId, TimeConstraint
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.grant import ContentLimit, Grant, MemberGrant, Resolved, StreamGrant
from personal_server.domain.stored import (
    Batch,
    RecordWrite,
)
from personal_server.enforcement.authority import read_authority
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server.door import Door, Reply
from tests.properties import answers, figures, hits, pages, timeline
from tests.properties.meaning import Term, letters, moment, stemmed, wanted_of
from tests.properties.reference import Json, Reader, Refused, Source, filtered, reaches_outside
from tests.properties.requests import Ask, Place
from tests.properties.worlds import (
    CONNECTIONS,
    DATED,
    NAMES,
    SOURCES,
    GrantSpec,
    TokenSpec,
    World,
    Write,
)

DECLARATIONS = {key: parse_declaration(raw) for key, raw in SOURCES.items()}
TITLES = {"notes": "title", "files": "name"}
DOUBLED = {"id", "record_key", "connector_id", "record_url", "snippet"}
DOUBLED_IN_EXCERPT = {"object", "end_chars", "truncated", "provenance"}
"""What a hit says once more for callers that do not count characters (resource server 11.4)."""
MARKER = re.compile(rb"mk(\d+)marx")


# Staging --------------------------------------------------------------------------------------
def furnish(store: RecordStore, world: World) -> None:
    for declaration in DECLARATIONS.values():
        store.put_declaration(declaration, orjson.dumps(declaration.raw), 1)
    for connection in connections(world):
        active = Connection(
            connection.connection_id,
            connection.connector_key,
            connection.source_id,
            connection.display_name,
            ConnectionStatus.ACTIVE,
            1,
            1,
        )
        store.add_connection(active)
    apply(store, sorted(world.writes, key=lambda w: (w.connection_id, w.stream)))
    for connection in connections(world):
        if connection.status is ConnectionStatus.REVOKED:
            store.update_connection(connection.connection_id, lambda _, to=connection: to)


def apply(store: RecordStore, writes: Iterable[Write]) -> None:
    """Commit writes in their order, runs of one place together."""
    batch: list[Write] = []
    for write in writes:
        if batch and (batch[0].connection_id, batch[0].stream) != (
            write.connection_id,
            write.stream,
        ):
            _commit(store, batch)
            batch = []
        batch.append(write)
    if batch:
        _commit(store, batch)


def _commit(store: RecordStore, writes: list[Write]) -> None:
    first = writes[0]
    stream = DECLARATIONS[CONNECTIONS[first.connection_id]].streams[first.stream]
    lines = [RecordWrite(w.key, w.data, w.emitted_s * NANOSECONDS) for w in writes]
    at_ns = writes[-1].emitted_s * NANOSECONDS
    store.commit(Batch(first.connection_id, stream, lines, at_ns))


def connections(world: World) -> list[Connection]:
    return [
        Connection(
            cid,
            key,
            SOURCES[key]["source"]["id"],
            NAMES.get(cid),
            ConnectionStatus(world.statuses[cid]),
            1,
            1,
        )
        for cid, key in CONNECTIONS.items()
    ]


def authority(world: World, token: TokenSpec) -> ReadAuthority:
    members = tuple(MemberGrant(g.grant_id, grant_of(g), g.source, g.status) for g in token.grants)
    resolved = Resolved(
        token.kind,
        "owner",
        "planner",
        "tok",
        "http://127.0.0.1:7662",
        2**62,
        members,
        "gpkg_1" if token.kind == "mcp_package" else None,
    )
    return read_authority(resolved, connections(world), DECLARATIONS)


def grant_of(spec: GrantSpec) -> Grant:
    """The grant as the program has it."""
    streams = tuple(
        StreamGrant(
            s.name,
            s.connections,
            s.fields,
            _bounds(s.name, s.since, s.until),
            s.resources,
            tuple(ContentLimit(field, values) for field, values in s.only),
        )
        for s in spec.streams
    )
    return Grant(
        grant_id=spec.grant_id,
        issued_at=f"{spec.issued}T00:00:00Z",
        subject_id="owner",
        client_id="planner",
        source=SourceId("connector", SOURCES[spec.source]["source"]["id"]),
        declaration_version="1",
        purpose_code="https://pdpp.dev/purpose/agent_context",
        access_mode="continuous",
        streams=streams,
        expires_at=None,
    )


def _bounds(stream: str, since: str | None, until: str | None) -> TimeConstraint | None:
    if since is None and until is None:
        return None
    points = [instant_ns(text) if text else None for text in (since, until)]
    return TimeConstraint(DATED[stream], points[0], points[1], since, until)


# Comparing ------------------------------------------------------------------------------------
class Session:
    """A token at a server's door, beside its reference."""

    def __init__(self, door: Door, world: World, token: TokenSpec) -> None:
        self.door = door
        self.world = world
        self.token = token
        self.authority = authority(world, token)
        self.reader = Reader(world, token)
        self.allowed = self.allowed_markers()

    @property
    def places(self) -> list[Place]:
        """What requests may aim at."""
        sources = self.reader.authority.sources
        return [Place(s.connection, s.stream, s.fields) for s in sources]

    def check(self, ask: Ask) -> None:
        """The server answers as the reference does, and nothing leaks."""
        reply = self.door.get(ask.target, self.authority)
        self.no_leak(reply)
        try:
            self._compare(ask, reply)
        except Refused as refused:
            self.same_refusal(refused, reply)

    def no_leak(self, reply: Reply) -> None:
        for marker in MARKER.findall(reply.text + self._opened(reply)):
            assert int(marker) in self.allowed, f"leaked {self.world.markers[int(marker)]}"

    def _opened(self, reply: Reply) -> bytes:
        """What the tokens of an answer hold, unsealed."""
        tokens = [reply.body.get(name) for name in ("next_cursor", "next_changes_since")]
        return b"".join(self.door.unseal(token) for token in tokens if token)

    def allowed_markers(self) -> set[int]:
        """The markers in what this token may see."""
        visible = {
            (row.source.connection, row.source.stream, row.key, name): row.data[name]
            for source in self.reader.authority.sources
            for row in self.reader.visible(source)
            for name in row.data
        }
        return {
            marker
            for marker, place in self.world.markers.items()
            if f"mk{marker}marx" in orjson.dumps(visible.get(place)).decode()
        }

    def same_refusal(self, refused: Refused, reply: Reply) -> None:
        found = (reply.status, reply.code)
        param = reply.error.get("param") if reply.status >= 400 else None
        assert any(
            found == (status, code) and expected in (None, param)
            for status, code, expected in refused.errors
        ), (found, param, refused.errors)
        if refused.connections is not None:
            offered = {c["connection_id"] for c in reply.error["available_connections"]}
            assert offered == refused.connections

    def _compare(self, ask: Ask, reply: Reply) -> None:
        match ask.kind:
            case "list":
                self._compare_list(ask, reply)
                self._says_why(ask, reply, empty=not reply.data)
            case "record":
                expected = answers.expected_record(self.reader, ask)
                assert reply.status == 200, reply.body
                body = {k: v for k, v in reply.body.items() if k not in ("links", "meta")}
                assert body == expected
            case "window":
                expected = answers.expected_window(self.reader, ask)
                assert reply.status == 200, reply.body
                assert reply.body["window"] == expected
            case "aggregate":
                expected = figures.expected_aggregate(self.reader, ask)
                assert reply.status == 200, reply.body
                _same_aggregate(expected, reply.body)
                self._says_why(ask, reply, empty=not reply.body["filtered_record_count"])
            case "search":
                self._compare_search(ask, reply)
            case "timeline":
                self._compare_timeline(ask, reply)
            case "streams":
                rows = figures.expected_streams(self.reader, ask)
                assert reply.status == 200, reply.body
                assert rows == [
                    (r["connection_id"], r["name"], r["record_count"], r["last_updated"])
                    for r in reply.data
                ]
            case _:
                self._compare_schema(ask, reply)

    def _compare_list(self, ask: Ask, reply: Reply) -> None:
        expected = answers.expected_list(self.reader, ask)
        assert reply.status == 200, reply.body
        assert reply.body["meta"]["count"] == expected.count
        _same_window(expected.window, reply.body["meta"].get("window"))
        remaining = expected.records
        while True:
            kept = pages.kept(ask.scalars, remaining)
            assert reply.data == remaining[:kept]
            remaining = remaining[kept:]
            if not reply.body["has_more"]:
                break
            reply = self.door.get(reply.body["links"]["next"], self.authority)
            self.no_leak(reply)
        assert remaining == []
        assert "next_cursor" not in reply.body

    def _compare_timeline(self, ask: Ask, reply: Reply) -> None:
        remaining = timeline.expected_timeline(self.reader, ask)
        assert reply.status == 200, reply.body
        unseen = timeline.timeless(self.reader, ask)
        assert bool(unseen) == ("source_skipped_not_applicable" in reply.warnings)
        while True:
            pages.ends_where_it_should(ask.scalars, reply.data, len(remaining))
            assert reply.data == remaining[: len(reply.data)]
            shown = {(each["connection_id"], each["stream"]) for each in reply.data}
            assert {each.source.order for each in reply.disclosed} == shown
            remaining = remaining[len(reply.data) :]
            if not reply.body["has_more"]:
                break
            reply = self.door.get(reply.body["links"]["next"], self.authority)
            self.no_leak(reply)
        assert remaining == []

    def _says_why(self, ask: Ask, reply: Reply, *, empty: bool) -> None:
        """2.2, 2.3: reads that reach outside say so, and empty answers why, and what is near."""
        if "across" in ask.scalars:
            return
        sources = self.reader.select(ask.scalars, ask.stream)
        outside = any(reaches_outside(each, timeline.zoned_filters(each, ask)) for each in sources)
        otherwise = {"since", "until"} & ask.scalars.keys()
        otherwise |= {name for name, operator, _ in ask.filters if operator == "in"}
        assert otherwise or ("outside_time_constraint" in reply.warnings) is outside
        meta = reply.body["meta"]
        assert ("empty" in meta) is empty
        if "outside_time_constraint" in reply.warnings and empty:
            assert meta["empty"] == {"reason": "not_granted"}
        for near in meta.get("near", ()):
            name, value = near["field"], near["value"]
            zoned = timeline.zoned_filters(sources[0], ask)
            others = tuple(f for f in zoned if f[0] != name or f[1] not in (None, "in"))
            rows = filtered(self.reader, sources, others)
            assert near["count"] == sum(row.data.get(name) == value for row in rows) > 0

    def _compare_search(self, ask: Ask, reply: Reply) -> None:
        expected = hits.expected_search(self.reader, ask)
        assert reply.status == 200, reply.body
        limit = len(reply.data) if "page_chars" in ask.scalars else pages.limit(ask.scalars)
        is_sorted = "sort" in ask.scalars
        first = [] if is_sorted else hits.first_page(expected.hits, limit)
        rest = [hit for hit in expected.hits if not any(hit is each for each in first)]
        total = len(expected.hits) + sum(hit.duplicates for hit in expected.hits)
        counted = {"kind": "none"} if is_sorted else {"kind": "exact", "value": total}
        meta = reply.body["meta"]
        assert meta["count"] == counted
        assert ("recall" in meta) is not is_sorted
        assert meta.get("relaxed") == expected.relaxed
        assert [near for near in meta.get("near", ()) if "word" in near] == expected.near
        assert meta.get("ignored_words", []) == wanted_of(ask.scalars["q"]).ignored
        remaining = first + rest
        while True:
            kept = len(reply.data)
            pages.ends_where_it_should(ask.scalars, reply.data, len(remaining))
            for hit, found in zip(reply.data, remaining[:kept], strict=True):
                self._same_hit(hit, found, is_lean="page_chars" in ask.scalars)
            assert _logged(reply) == _told(reply.data)
            remaining = remaining[kept:]
            if not reply.body["has_more"]:
                break
            reply = self.door.get(reply.body["links"]["next"], self.authority)
            self.no_leak(reply)
        assert remaining == []

    def _same_hit(self, hit: Json, found: hits.Found, *, is_lean: bool) -> None:
        row = found.row
        place = (hit["connection_id"], hit["stream"], hit["record_id"])
        assert place == (row.source.connection, row.source.stream, row.key)
        assert set(hit["matched_fields"]) == found.matched
        assert hit.get("duplicates", 0) == found.duplicates
        title = row.data.get(TITLES.get(row.source.stream, ""))
        assert hit.get("title") == (title[:200] if title else title)
        authors = [row.data.get(name) for name in timeline.authors(row.source)]
        author = next((text for text in authors if isinstance(text, str) and text.strip()), None)
        assert hit.get("author") == (author[:200] if author else author)
        names = [row.data.get(name) for name in timeline.naming(row.source)]
        called = next((text for text in names if isinstance(text, str) and text.strip()), None)
        assert hit.get("conversation") == (called[:200] if called else None)
        assert hit.get("authored_at") == row.data.get(DATED.get(row.source.stream, ""))
        assert hit.get("context") == hits.expected_context(self.reader, row)
        assert hit.get("matched_words") == found.words
        terms = found.terms
        (excerpt,) = hit["evidence_excerpts"]
        _verbatim(excerpt, row.data[excerpt["field_path"]], terms)
        is_told = excerpt["field_path"] == TITLES.get(row.source.stream) and len(title or "") <= 200
        assert not is_told or found.matched == {excerpt["field_path"]}
        if is_lean:  # 11.4: nothing that the other members say
            assert not DOUBLED & hit.keys()
            assert not DOUBLED_IN_EXCERPT & excerpt.keys()
            return
        assert hit.keys() >= DOUBLED
        assert excerpt.keys() >= DOUBLED_IN_EXCERPT
        assert hit["id"] == hit["record_key"] == row.key
        assert hit["connector_id"] == hit["connector_key"]
        assert hit["snippet"]["field"] == excerpt["field_path"]
        _marked(hit["snippet"], row.data[hit["snippet"]["field"]])

    def _compare_schema(self, ask: Ask, reply: Reply) -> None:
        _, sources = self.reader.candidates(ask.scalars)
        assert reply.status == 200, reply.body
        if "view" in ask.scalars:
            self._compare_compact(reply, sources)
            return
        granted = {
            (each["connection_id"], row["name"]): {
                name for name, can in row["field_capabilities"].items() if can["granted"]
            }
            for connector in reply.body["connectors"]
            for row in connector["streams"]
            for each in row["granted_connections"]
        }
        assert granted == {(s.connection, s.stream): set(s.fields) for s in sources}

    def _compare_compact(self, reply: Reply, sources: list[Source]) -> None:
        """6.4: what is granted of each row, and what of it is visible."""
        offered = {(s.connection, s.stream): s for s in sources}
        met: set[tuple[str, str]] = set()
        glanced: dict[tuple[str, str], tuple[str, ...]] = {}
        for connector in reply.body["connectors"]:
            for row in connector["streams"]:
                held = row.get("granted_connections") or connector["granted_connections"]
                places = [(each["connection_id"], row["name"]) for each in held]
                assert not met & set(places)
                met |= set(places)
                alike = [offered[place] for place in places]
                flags = {n: text.split(",") for n, text in row["field_capabilities"].items()}
                granted = {name for name, listed in flags.items() if "g=false" not in listed}
                assert all(granted == set(source.fields) for source in alike)
                left_out = len(alike[0].properties) - len(granted)
                assert row.get("fields_left_out", 0) == left_out
                expected = figures.expected_glance(self.reader, alike)
                _same_glance(expected, row["visible"])
                named = (expected["time_field"],) if "time_field" in expected else ()
                glanced |= dict.fromkeys(places, named)
        assert met == set(offered)
        assert {each.source.order: tuple(each.fields) for each in reply.disclosed} == glanced


def _same_glance(expected: Json, found: Json) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        shown = moment(found[name]) if name in ("earliest", "latest") else found[name]
        assert shown == value


def _told(data: list[Json]) -> dict[tuple[str, str], set[str]]:
    """The records that hits tell of, their neighbours too, by place."""
    told: dict[tuple[str, str], set[str]] = {}
    for hit in data:
        beside = hit.get("context", {}).values()
        keys = {hit["record_id"], *(each["record_id"] for each in beside)}
        told.setdefault((hit["connection_id"], hit["stream"]), set()).update(keys)
    return told


def _logged(reply: Reply) -> dict[tuple[str, str], set[str]]:
    given = [each for each in reply.disclosed if each.record_count]
    assert all(each.record_count == len(set(each.keys)) for each in given)
    return {each.source.order: set(each.keys) for each in given}


def _same_window(expected: Json | None, found: Json | None) -> None:
    if expected is None:
        assert found is None
        return
    assert found is not None
    for name in ("earliest_at", "latest_at"):
        text = found[name]
        assert moment(text) == expected[name]
    assert found["total"] == expected["total"]


def _same_aggregate(expected: Json, body: Json) -> None:
    for name, value in expected.items():
        if name == "groups":
            assert len(body["groups"]) == len(value)
            for one, other in zip(value, body["groups"], strict=True):
                assert one.keys() == other.keys()
                for member in one:
                    _same_value(one[member], other[member])
        else:
            _same_value(value, body[name])


def _same_value(expected: Any, found: Any) -> None:
    if isinstance(expected, dict):
        wanted = cast("Json", expected)
        if "any_of" in wanted:
            assert found in wanted["any_of"]
        else:
            assert found == pytest.approx(wanted["about"])
    elif isinstance(expected, int) and abs(expected) >= 2**63:
        assert found == float(expected)
    else:
        assert found == expected


def _verbatim(excerpt: Json, value: str, terms: list[Term]) -> None:
    start, end = excerpt["start_chars"], excerpt["start_chars"] + len(excerpt["preview_text"])
    assert excerpt["preview_text"] == value[start:end]
    assert excerpt.get("end_chars", end) == end
    assert 0 < end - start <= 200
    assert excerpt["total_chars"] == len(value)
    is_cut = end - start < len(value)
    assert excerpt.get("truncated", is_cut) == is_cut
    assert 1 <= len(excerpt["match_ranges"]) <= 8
    for low, high in excerpt["match_ranges"]:
        assert start <= low < high <= end
        matched = letters(value[low:high])
        for word, stem in zip(matched, stemmed(matched, value), strict=True):
            begun = any(word.startswith(each) for term in terms for each in term.words)
            assert begun or any({word, stem} & term.forms for term in terms)


def _marked(snippet: Json, value: str) -> None:
    text = snippet["text"]
    plain = text.replace("<mark>", "").replace("</mark>", "")
    shown = html.unescape(plain)
    assert shown.strip("…") in value
    assert len(shown.strip("…")) <= 120
    assert text.count("<mark>") == text.count("</mark>") >= 1
    assert "<" not in plain
