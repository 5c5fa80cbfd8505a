"""What changed in a collection: by its tokens as long as they are true, else by all its marks.

Rule: a token is believed until it passes over a change; what is gone is said only of a list that
came whole.
Source: docs/contract/feeds.md 12; RFC 6578.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from pdpp_sources.dav.dav_discovery import DavCollection
from pdpp_sources.dav.dav_messages import LONGEST_MARK, KnownCollection
from pdpp_sources.dav.dav_paths import item_path, shown_href
from pdpp_sources.dav.dav_requests import propfind, sync_collection
from pdpp_sources.dav.dav_session import DavSession, NotAnswered
from pdpp_sources.dav.multistatus import DAV, DavAnswer

MOST_PAGES = 1_000
MOST_FOREIGN = 1_000
GONE = frozenset({404, 410})
FULL = 507
_ETAG, _TYPE = f"{DAV}getetag", f"{DAV}resourcetype"


class DavChanges(msgspec.Struct):
    """What of a collection is fetched, and what is gone.

    Shapes: `fetched` has the address and the mark of each item by its path; no mark where the
        server has none.  `foreign` are addresses that lie elsewhere; `listed` where all items were
        compared.
    """

    fetched: dict[str, tuple[str, str | None]] = msgspec.field(
        default_factory=dict[str, tuple[str, str | None]]
    )
    gone: set[str] = msgspec.field(default_factory=set[str])
    foreign: set[str] = msgspec.field(default_factory=set[str])
    token: str | None = None
    listed: bool = False
    is_honest: bool = True


class CollectionState(msgspec.Struct, frozen=True):
    """A collection, and what is known of it and of its items."""

    collection: DavCollection
    known: KnownCollection | None
    marks: Mapping[str, str]

    @property
    def is_unchanged(self) -> bool:
        """Whether its server says that nothing changed since; a ctag says it alone."""
        known, now = self.known, self.collection
        if known is None or known.lists or known.reads:
            return False
        if now.ctag is not None:
            return now.ctag == known.ctag
        return now.token is not None and known.is_honest and now.token == known.token

    @property
    def own_marks(self) -> dict[str, str]:
        """The marks of its own items."""
        path = self.collection.path
        return {
            name: mark
            for name, mark in self.marks.items()
            if name.startswith(path) and name != path
        }


def changes(session: DavSession, state: CollectionState) -> DavChanges:
    """Ask what changed.  Raises: NotAnswered, AccountTrouble."""
    known, now = state.known, state.collection
    is_new = known is None or known.lists or known.reads
    if known is None or is_new or not (known.is_honest and known.token and now.syncs):
        found = _compared(session, state)
        found.is_honest = known is None or known.is_honest
        return found
    try:
        found = _since(session, state, known.token)
    except NotAnswered:  # a token that is refused, as a server may at any time
        found = None
    says_changed = now.ctag is not None and now.ctag != known.ctag
    if found is not None and (found.fetched or found.gone or not says_changed):
        return found
    compared = _compared(session, state)
    compared.is_honest = found is None or not (compared.fetched or compared.gone)
    return compared


def _since(session: DavSession, state: CollectionState, token: str) -> DavChanges:
    """By a token, page by page: a server that cuts its answer says 507 of the collection."""
    found = DavChanges()
    marks, tokens = state.own_marks, {token}
    for _ in range(MOST_PAGES):
        answers, new_token = session.synced(state.collection.url, sync_collection(token))
        is_cut = False
        for answer in answers:
            if answer.status == FULL:
                is_cut = True
            else:
                _note(found, answer, state.collection, marks)
        if not is_cut:
            found.token = new_token
            return found
        if new_token is None or new_token in tokens:
            raise NotAnswered(FULL)
        tokens.add(new_token)
        token = new_token
    raise NotAnswered(FULL)


def _compared(session: DavSession, state: CollectionState) -> DavChanges:
    """By the marks of all items."""
    now = state.collection
    names = propfind(["d:getetag", "d:resourcetype"])
    answers, _ = session.listed("PROPFIND", now.url, "1", names)
    found, marks = DavChanges(token=now.token, listed=True), state.own_marks
    seen: set[str] = set()
    for answer in answers:
        kind = answer.properties.get(_TYPE)
        if kind is not None and f"{DAV}collection" in kind.names:
            continue
        path = _note(found, answer, now, {} if state.known and state.known.reads else marks)
        if path is not None:
            seen.add(path)
    missing = set(marks) - seen - found.foreign - found.gone
    found.gone |= missing
    return found


def _note(
    found: DavChanges, answer: DavAnswer, collection: DavCollection, marks: Mapping[str, str]
) -> str | None:
    """Take one answer; the path of an item that is there."""
    path = item_path(answer.href, collection.url)
    if path is None:
        if not _is_itself(answer.href, collection) and len(found.foreign) < MOST_FOREIGN:
            found.foreign.add(shown_href(answer.href))
        return None
    if path.endswith("/"):  # a collection in it
        return None
    if answer.status in GONE:
        found.fetched.pop(path, None)
        if path in marks:
            found.gone.add(path)
        return None
    found.gone.discard(path)
    etag = answer.text(_ETAG)
    etag = _mark_of(etag.removeprefix("W/")) if etag is not None else None
    if etag is None or marks.get(path) != etag:
        found.fetched[path] = (answer.href, etag)
    return path


def _mark_of(etag: str) -> str:
    """An etag as it is kept, of each item: by its digest where it is longer than any honest one."""
    return etag if len(etag) <= LONGEST_MARK else hashlib.sha256(etag.encode()).hexdigest()


def _is_itself(href: str, collection: DavCollection) -> bool:
    return item_path(f"{href.rstrip('/')}/x", collection.url) == f"{collection.path}x"
