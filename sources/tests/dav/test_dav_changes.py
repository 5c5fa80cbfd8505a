"""What changed in a collection, of servers whose tokens are true, refused, cut or false."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from pdpp_sources.dav.dav_changes import CollectionState, changes
from pdpp_sources.dav.dav_discovery import DavCollection
from pdpp_sources.dav.dav_messages import LONGEST_MARK, KnownCollection
from pdpp_sources.dav.dav_session import DavSession, NotAnswered
from pdpp_sources.dav.multistatus import DAV, DavAnswer, DavProperty

URL, PATH = "https://dav.example.org/ada/work/", "/ada/work/"
REFUSED = 403


def item(name: str, etag: str | None, status: int | None = None) -> DavAnswer:
    """What a server says of an item."""
    properties = {} if etag is None else {f"{DAV}getetag": DavProperty(text=etag)}
    return DavAnswer(f"{PATH}{name}", status, properties)


@dataclass
class Server:
    """Answers in the place of a session: `pages` to tokens, one after the other, else a list."""

    listing: Sequence[DavAnswer] = ()
    pages: list[tuple[list[DavAnswer], str | None]] = field(
        default_factory=list[tuple[list[DavAnswer], str | None]]
    )
    asked: list[str] = field(default_factory=list[str])

    def synced(self, _url: str, _body: str) -> tuple[list[DavAnswer], str | None]:
        self.asked.append("token")
        if not self.pages:
            raise NotAnswered(REFUSED)
        return self.pages.pop(0)

    def listed(
        self, _method: str, url: str, _depth: str, _body: str
    ) -> tuple[Sequence[DavAnswer], str]:
        self.asked.append("list")
        return self.listing, url


def state(*, known: KnownCollection | None, syncs: bool = True) -> CollectionState:
    now = DavCollection(URL, PATH, "Work", "c-2", "t-1" if syncs else None, syncs)
    return CollectionState(now, known, {f"{PATH}a.ics": "1", f"{PATH}b.ics": "1"})


KNOWN = KnownCollection(name="Work", ctag="c-1", token="t-1")


def session(server: Server) -> DavSession:
    return cast("DavSession", server)


def test_a_true_token_names_what_is_new_and_what_is_gone() -> None:
    server = Server(pages=[([item("c.ics", "1"), item("b.ics", None, 404)], "t-2")])
    found = changes(session(server), state(known=KNOWN))
    assert (set(found.fetched), found.gone, found.token) == (
        {f"{PATH}c.ics"},
        {f"{PATH}b.ics"},
        "t-2",
    )
    assert server.asked == ["token"]


def test_an_answer_that_is_cut_goes_on_with_its_token() -> None:
    cut = DavAnswer(PATH, 507)
    server = Server(pages=[([item("c.ics", "1"), cut], "t-2"), ([item("d.ics", "1")], "t-3")])
    found = changes(session(server), state(known=KNOWN))
    assert set(found.fetched) == {f"{PATH}c.ics", f"{PATH}d.ics"}
    assert found.token == "t-3"


def test_a_server_that_cuts_for_ever_with_one_token_is_read_whole() -> None:
    cut = DavAnswer(PATH, 507)
    whole = [item("a.ics", "1"), item("b.ics", "2")]
    server = Server(whole, pages=[([cut], "t-2"), ([cut], "t-2")])
    found = changes(session(server), state(known=KNOWN))
    assert set(found.fetched) == {f"{PATH}b.ics"}
    assert server.asked == ["token", "token", "list"]


def test_a_refused_token_is_no_reason_to_call_anything_gone() -> None:
    server = Server([item("a.ics", "1"), item("b.ics", "1"), item("c.ics", "1")])
    found = changes(session(server), state(known=KNOWN))
    assert (set(found.fetched), found.gone) == ({f"{PATH}c.ics"}, set())
    assert found.is_honest


def test_a_token_that_passes_over_a_change_is_not_believed_again() -> None:
    server = Server([item("a.ics", "2")], pages=[([], "t-2")])
    found = changes(session(server), state(known=KNOWN))
    assert (set(found.fetched), found.gone) == ({f"{PATH}a.ics"}, {f"{PATH}b.ics"})
    assert not found.is_honest


def test_without_tokens_all_marks_are_compared_and_weak_ones_too() -> None:
    server = Server([item("a.ics", "W/1"), item("b.ics", "2")])
    found = changes(session(server), state(known=KNOWN, syncs=False))
    assert (set(found.fetched), found.gone, found.listed) == ({f"{PATH}b.ics"}, set(), True)


def test_what_has_no_mark_is_fetched_each_time_its_list_is_read() -> None:
    server = Server([item("a.ics", None), item("b.ics", "1")])
    found = changes(session(server), state(known=KNOWN, syncs=False))
    assert set(found.fetched) == {f"{PATH}a.ics"}


def test_what_lies_elsewhere_is_named_and_not_fetched() -> None:
    elsewhere = DavAnswer("https://evil.example.org/a.ics", None, {})
    above = DavAnswer("/ada/work/../../bob/a.ics", None, {})
    server = Server([item("a.ics", "1"), item("b.ics", "1"), elsewhere, above, DavAnswer(PATH)])
    found = changes(session(server), state(known=None))
    assert not found.fetched
    assert len(found.foreign) == 2
    assert not found.gone


def test_of_an_etag_without_end_no_more_is_kept_than_tells_it_from_others() -> None:
    long = "e" * 8_000_000
    known = KnownCollection(name="Work", ctag="c-1", token=None)

    def marks(*etags: str) -> list[str | None]:
        names = ("c.ics", "d.ics")
        listing = [item(name, etag) for name, etag in zip(names, etags, strict=True)]
        return [
            e for _, e in changes(session(Server(listing)), state(known=known)).fetched.values()
        ]

    first, other = marks(long, f"{long}x")
    assert first != other
    assert max(len(first or ""), len(other or "")) <= LONGEST_MARK
    assert marks(long, "W/1") == [first, "1"]
