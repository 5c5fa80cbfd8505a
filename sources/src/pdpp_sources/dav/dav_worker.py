"""The process that reads a DAV account: it parses what a server says, and has no network.

Rule: read only towards the account (`PROPFIND`, `REPORT`, `GET`); it names a request, and the
process that holds the connection and the password sends it.
Source: docs/contract/feeds.md 12.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NoReturn

from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.confined_worker import begin_step, confine_worker, end_of
from pdpp_sources.dav.dav_changes import CollectionState, changes
from pdpp_sources.dav.dav_discovery import DavCollection, DavDiscovery
from pdpp_sources.dav.dav_items import DavItems
from pdpp_sources.dav.dav_messages import (
    MISBEHAVES,
    MOST_COLLECTIONS,
    CollectionEnd,
    CollectionGone,
    CollectionSeen,
    DavEnd,
    DavHome,
    DavTask,
    HomesSeen,
    ItemGone,
    ItemRefused,
    receive_to_reader,
)
from pdpp_sources.dav.dav_requests import KINDS, DavKind
from pdpp_sources.dav.dav_session import DavSession, NotAnswered
from pdpp_sources.relayed_server import RelayedServer

_BUFFER_BYTES = 64 * 1024
FOREIGN = "foreign_item"


def read_account(session: DavSession, task: DavTask) -> None:
    """Say all that is new.  Raises: AccountTrouble."""
    kind = KINDS[task.kind]
    collections = _collections(session, DavDiscovery(session, kind), task)
    there = {each.path for each in collections}
    # before what is new, which may be the same under other addresses and would count twice; and a
    # collection after its items, which nobody would look for where a run ends between the two
    for path in sorted(task.collections.keys() - there):
        for item in sorted(task.marks):
            if item.startswith(path) and not any(item.startswith(each) for each in there):
                session.say(ItemGone(item))
        session.say(CollectionGone(path))
    for collection in collections:
        _read_collection(session, kind, collection, task)


def _collections(
    session: DavSession, discovery: DavDiscovery, task: DavTask
) -> list[DavCollection]:
    """The collections of the homes that are known; where those moved, they are found anew."""
    if task.homes:
        try:
            return _of_homes(discovery, task.homes)
        except NotAnswered:
            pass
    homes = discovery.homes(task.url)
    session.say(HomesSeen(homes))
    try:
        return _of_homes(discovery, homes)
    except NotAnswered:
        raise AccountTrouble("dav_not_found") from None


def _of_homes(discovery: DavDiscovery, homes: list[DavHome]) -> list[DavCollection]:
    """Each once, whichever homes list it.  Raises: NotAnswered, AccountTrouble for too many."""
    found: dict[str, DavCollection] = {}
    for home in homes:
        for each in discovery.collections(home):
            found.setdefault(each.path, each)
            if len(found) > MOST_COLLECTIONS:
                raise AccountTrouble(MISBEHAVES)
    return list(found.values())


def _read_collection(
    session: DavSession, kind: DavKind, collection: DavCollection, task: DavTask
) -> None:
    """One collection; one that its server does not show costs itself only."""
    known = task.collections.get(collection.path)
    state = CollectionState(collection, known, task.marks)
    name = known.name if known is not None else collection.name
    if state.is_unchanged:
        return
    session.say(CollectionSeen(collection.path, name))
    try:
        found = changes(session, state)
    except NotAnswered:
        session.say(ItemRefused(collection.path, "", "item_not_given"))
        return
    for path in sorted(found.gone):
        session.say(ItemGone(path))
    for shown in sorted(found.foreign - task.marks.keys()):
        session.say(ItemRefused(shown, "-", FOREIGN))
    collection.name = name
    marks = {} if known is not None and known.reads else task.marks
    for item in DavItems(session, kind, collection, marks).fetched(found.fetched):
        session.say(item)
    was_read = known is None or known.reads
    end = CollectionEnd(
        collection.path, name, collection.ctag, found.token, found.is_honest, found.listed, was_read
    )
    session.say(end)


def _serve(server: RelayedServer) -> str | None:
    """Read the account of the one task.  Raises: AccountTrouble."""
    task = receive_to_reader(server.requests)
    if not isinstance(task, DavTask):
        return MISBEHAVES
    begin_step()
    read_account(DavSession(server), task)
    return None


def main(files: Sequence[int], _seconds: float, memory_bytes: int) -> NoReturn:
    """Serve whoever had this process started.

    Source: `process_starter.py`.
    """
    requests, replies = os.fdopen(files[0], "rb"), os.fdopen(files[1], "wb", _BUFFER_BYTES)
    confine_worker(memory_bytes)
    server = RelayedServer(requests, replies, receive_to_reader, MISBEHAVES)
    server.say(DavEnd(end_of(lambda: _serve(server), MISBEHAVES)))
    os._exit(0)
