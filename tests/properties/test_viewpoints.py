"""Through an app's eyes: what its pages show is, to the byte, what its token reads over /v1.

Every stream, table, record, text, figure and search of generated grants and packages, and of the
owner's own; nothing hidden stands on any page.
"""

from __future__ import annotations

import random
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest

from pdpp_kernel.record import key_segment
from personal_server.consent.credentials import secret_hash
from personal_server.console.composition import ConsoleParts, console_app
from personal_server.console.languages import PageReader, language_of
from personal_server.console.record_figures import VALUES_SHOWN
from personal_server.console.record_values import brief, called
from personal_server.console.search import HITS_SHOWN
from personal_server.console.stream_reading import ROWS_SHOWN
from personal_server.console.viewpoints import records_path
from personal_server.console.words import field_words, said
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.grant import render_grant
from personal_server.enforcement.queries import MAX_WINDOW_CHARS
from personal_server.enforcement.timeline import time_field
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.reading.identification import Identifier, OneState
from personal_server.reading.tokens import TokenResolver
from personal_server.storage.authorization_rows import (
    AuthorizationRow,
    ClientRow,
    GrantRow,
    PackageMemberRow,
    PackageRow,
    TokenRow,
)
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.disclosure_stores import DisclosureQuery
from server.tests.console.browsing import CHEAP_HASHER, ORIGIN, Browser, Page
from server.tests.resource_server.door import Door, Reply
from tests.oracle.authorization_memory import MemoryAuthorizationStore
from tests.oracle.disclosure_memory import MemoryDisclosures
from tests.properties.comparing import MARKER, Session, furnish, grant_of
from tests.properties.reference import Json
from tests.properties.sizes import worlds
from tests.properties.stores import open_store
from tests.properties.worlds import STREAMS, WORDS, TokenSpec, make_token, make_world
from tests.proving import bearer, unproven

TOKENS, OPENED = 3, 2
SECRET = "pdpp_at_eyes"


@dataclass
class Eyes:
    """One token: at the door of /v1, and as the pages of its grant or package."""

    session: Session

    def __post_init__(self) -> None:
        self.door, self.token = self.session.door, self.session.token
        self.authorization = MemoryAuthorizationStore("owner")
        self.disclosures = MemoryDisclosures()
        with self.authorization.write() as writer:
            for row in rows_of(self.token):
                writer.insert(row)
        ports, declarations = self.door.ports, KnownDeclarations()
        identify = Identifier(
            TokenResolver(self.authorization, ports.clock, unproven()),
            self.open_state,
            declarations,
            frozenset({ORIGIN}).__contains__,
        )
        sign_in = OwnerSignIn(self.authorization, ports.clock, random.randbytes, CHEAP_HASHER)
        app = console_app(
            ConsoleParts(
                server_name="A server",
                authorization=self.authorization,
                disclosures=self.disclosures,
                reads=ports,
                declarations=declarations,
                random_bytes=random.randbytes,
                sign_in=sign_in,
                identify=identify,
                open_state=self.open_state,
            )
        )
        self.browser = Browser(app)
        page = self.browser.get(f"/owner/enter?t={sign_in.make_link()}")
        self.browser.submit(page, "/owner/enter")
        self.root, self.authority = self._viewpoint(identify)

    def _viewpoint(self, identify: Identifier) -> tuple[str, ReadAuthority]:
        if self.token.kind == "owner":
            return "/owner", self.session.authority
        with identify(bearer(SECRET)) as (found, _):
            return f"/owner/access/{held_id(self.token)}", found.authority

    @contextmanager
    def open_state(self, timeout_seconds: float | None) -> Generator[OneState]:
        records = self.door.store
        with self.authorization.read() as reader, records.snapshot(timeout_seconds) as snapshot:
            yield reader, snapshot

    def page(self, path: str) -> Page:
        """A page of this view, on which nothing stands that the token may not see."""
        page = self.browser.get(unescape(path))
        assert page.status == 200, (path, page.error)
        told = {int(marker) for marker in MARKER.findall(page.text.encode())}
        assert told <= self.session.allowed, (path, told - self.session.allowed)
        return page

    def read(self, target: str) -> Reply:
        """What the token is answered."""
        reply = self.door.get(target, self.authority)
        assert reply.status == 200, (target, reply.body)
        return reply

    def check(self, rng: random.Random) -> None:
        """Everything there is to see."""
        first = self.page(f"{self.root}/records")
        assert ('data-field="view-of"' in first.text) == (self.token.kind != "owner")
        listed = dict(COUNTED_STREAMS.findall(first.text))
        for source in self.authority.sources:
            place = f"{self.root}/records/{source.connection_id}/{source.stream}"
            assert int(listed.pop(place, "0")) == self.check_stream(place, source, rng)
        assert listed == {}
        for word in rng.sample(WORDS, 3):
            self.check_search(quote(word))
        assert self.disclosures.disclosures(DisclosureQuery(limit=1)) == ()

    def check_stream(self, place: str, source: ReadableSource, rng: random.Random) -> int:
        """Its table, its figures and some of its records; how many records there are."""
        dated = time_field(source)
        sort = "" if dated is None else f"&sort=-{dated.name}"
        target = f"/v1/streams/{source.stream}/records?connection_id={source.connection_id}"
        whole = self.read(f"{target}&limit=100&count=exact{sort}")
        page, rest = self.page(f"{place}?as=table"), whole.data
        self.check_facets(page, source)
        while True:
            shown, rest = rest[:ROWS_SHOWN], rest[ROWS_SHOWN:]
            assert table_of(page, source) == [row_of(place, source, page, each) for each in shown]
            further = FURTHER.search(page.text)
            assert (further is not None) == bool(rest)
            if further is None:
                break
            page = self.page(further[1])
        for key in rng.sample(whole.keys, min(OPENED, len(whole.keys))):
            self.check_record(f"{place}/{key_segment(key)}", source, key)
        count = whole.body["meta"]["count"]["value"]
        assert f'data-field="total">{count:,} ' in self.page(place).text
        return count

    def check_facets(self, page: Page, source: ReadableSource) -> None:
        """Each field with its values, as an aggregate counts them."""
        for words, values in FACETS.findall(page.text):
            (name,) = (name for name in source.fields if field_words(name) == unescape(words))
            groups = self.read(
                f"/v1/streams/{source.stream}/aggregate?metric=count&group_by={name}"
                f"&limit={VALUES_SHOWN}&connection_id={source.connection_id}"
            ).body["groups"]
            assert [int(count) for count in COUNTS.findall(values)] == [g["count"] for g in groups]

    def check_record(self, place: str, source: ReadableSource, key: str) -> None:
        """The very bytes of a record, its fields, what is masked, and its texts."""
        target = f"/v1/streams/{source.stream}/records/{key_segment(key)}"
        asked = f"?connection_id={source.connection_id}"
        answer = self.read(target + asked)
        assert answer.text.startswith(self.page(f"{place}/json").text.encode()[:-1] + b',"links":')
        page, data = self.page(place), answer.body["data"]
        told = [name for name, value in data.items() if value not in (None, "", [], {})]
        masked = [name for name in every_field(source) if name not in source.fields]
        assert re.findall(r'<dt id="field-([^"]+)"', page.text) == told
        assert re.findall(r'json#field-|#field-([^"]+)"', page.text) == masked
        for name in data:
            if isinstance(data[name], str):
                self.check_text(
                    f"{place}/text/{name}", f"{target}/field-window{asked}&field={name}"
                )

    def check_text(self, place: str, target: str) -> None:
        """A long text."""
        window = self.read(f"{target}&limit_chars={MAX_WINDOW_CHARS}").body["window"]["text"]
        (shown,) = re.findall(
            r'<div class="card said">(.*?)</div>', self.page(place).text, re.DOTALL
        )
        assert unescape(shown) == said(window, MAX_WINDOW_CHARS)

    def check_search(self, words: str) -> None:
        """The same hits in the same order, with the same words."""
        page = self.page(f"{self.root}/search?q={words}")
        hits = self.read(f"/v1/search?q={words}&limit={HITS_SHOWN}").data
        assert re.findall(r'<h3><a href="([^"]+)"', page.text) == [
            records_path(self.root, hit["connection_id"], hit["stream"], hit["record_key"])
            for hit in hits
        ]
        excerpts = re.findall(
            r'<span class="excerpt" dir="auto">(.*?)</span>', page.text, re.DOTALL
        )
        texts = [hit["evidence_excerpts"][0]["preview_text"] for hit in hits]
        assert [unescape(re.sub("<[^>]+>", "", each)) for each in excerpts] == [
            said(text, len(text)) for text in texts
        ]


COUNTED_STREAMS = re.compile(r'data-field="kind" href="([^"]+)".*?quiet count">(\d+)<')
FURTHER = re.compile(r'data-field="next" href="([^"]+)"')
FACETS = re.compile(r'<h3 id="facet-\d+">(.*?)</h3>(.*?)</section>', re.DOTALL)
COUNTS = re.compile(r'</a> <span class="quiet">(\d+)</span></li>')
ROW = re.compile(r'<tr><th scope="row"><a href="([^"]+)">(.*?)</a></th>(.*?)</tr>', re.DOTALL)
CELL = re.compile("<td>(.*?)</td>", re.DOTALL)
SAID = re.compile(r'<div class="card said">(.*?)</div>', re.DOTALL)
COLUMN = re.compile(r'<th scope="col"[^>]*>(?:<a[^>]*>)?([^<]*?)(?: [↓↑])?<')


READER = PageReader(language_of("en"), ZoneInfo("UTC"))


def columns_of(page: Page, source: ReadableSource) -> list[str]:
    """The fields of a table by name."""
    named = {field_words(name): name for name in source.fields}
    return [named[unescape(words)] for words in COLUMN.findall(page.text)]


def table_of(page: Page, source: ReadableSource) -> list[list[str]]:
    """The link and the cells of each row."""
    rows = [
        [
            unescape(link),
            unescape(name),
            *map(unescape, re.findall("<td>(.*?)</td>", rest, re.DOTALL)),
        ]
        for link, name, rest in ROW.findall(re.sub("</?time[^>]*>", "", page.text))
    ]
    assert all(len(row) == 1 + len(columns_of(page, source)) for row in rows)
    return rows


def row_of(place: str, source: ReadableSource, page: Page, record: Json) -> list[str]:
    """The same of a record that was read."""
    cells = [
        READER.text(brief(record["data"].get(name), source.declared.properties[name].kind))
        for name in columns_of(page, source)
    ]
    name = called(source, record["data"])
    first = cells[0] or (record["id"] if name is None else READER.text(name))
    return [f"{place}/{key_segment(record['id'])}", first, *cells[1:]]


def every_field(source: ReadableSource) -> list[str]:
    """What the stream declares, granted or not."""
    declared = STREAMS[source.connector_key, source.stream]
    return list(declared["schema"]["properties"])


def held_id(token: TokenSpec) -> str:
    """What the owner's pages call it by."""
    return "gpkg_1" if token.kind == "mcp_package" else token.grants[0].grant_id


def rows_of(token: TokenSpec) -> Iterator[AuthorizationRow]:
    """The grant or package as it is stored, with a token of it."""
    if token.kind == "owner":
        return
    is_package = token.kind == "mcp_package"
    yield ClientRow(
        client_id="planner",
        client_ref="clr_planner",
        registration="dynamic",
        name="Planner",
        redirect_uris=("https://app.example/cb",),
        registered_at_ns=0,
    )
    if is_package:
        yield PackageRow(package_id="gpkg_1", client_id="planner", created_at_ns=0, revision="rv")
    for position, spec in enumerate(token.grants):
        grant = grant_of(spec)
        yield GrantRow(
            grant_id=spec.grant_id,
            grant=render_grant(grant),
            client_id="planner",
            connector_key=spec.source,
            access_mode="continuous",
            issued_at_ns=0,
            revision="rv",
            expires_at_ns=1 if spec.status == "grant_expired" else None,
            reason="owner" if spec.status == "grant_revoked" else None,
            revoked_at_ns=1 if spec.status == "grant_revoked" else None,
        )
        if is_package:
            yield PackageMemberRow(package_id="gpkg_1", position=position, grant_id=spec.grant_id)
    yield TokenRow(
        token_hash=secret_hash(SECRET),
        kind=token.kind,
        client_id="planner",
        grant_id=None if is_package else held_id(token),
        package_id="gpkg_1" if is_package else None,
        origin=ORIGIN,
        resource=ORIGIN,
        scope="pdpp:read",
        issued_at_ns=0,
        expires_at_ns=2**62,
    )


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("seed", worlds(20))
def test_a_page_shows_what_the_token_reads(
    kind: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("personal_server.console.record_pages.FIGURES_SECONDS", 60.0)
    monkeypatch.setattr("personal_server.console.stream_pages.FIGURES_SECONDS", 60.0)
    monkeypatch.setattr("personal_server.console.search_chips.FIGURES_SECONDS", 60.0)
    world = make_world(seed)
    with open_store(kind, tmp_path) as store:
        furnish(store, world)
        door = Door(store)
        for _ in range(TOKENS):
            token = make_token(world)
            try:
                Eyes(Session(door, world, token)).check(random.Random(seed))
            except AssertionError as failure:
                failure.add_note(f"{kind} {token}")
                raise
