"""The process that reads a DAV account: it parses what a server says, and has no network.

Rule: read only towards the account (`PROPFIND`, `REPORT`, `GET`); it names a request, and the
process that holds the connection and the password sends it.
Source: docs/contract/feeds.md 12.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import NoReturn

from pdpp_kernel.system.confinement import Limits, confine
from pdpp_kernel.system.landlock import read_only
from pdpp_sources.dav.dav_changes import CollectionState, changes
from pdpp_sources.dav.dav_discovery import DavCollection, DavDiscovery
from pdpp_sources.dav.dav_items import DavItems
from pdpp_sources.dav.dav_messages import (
    MISBEHAVES,
    CollectionEnd,
    CollectionGone,
    CollectionSeen,
    DavEnd,
    DavHome,
    DavTask,
    DavTrouble,
    HomesSeen,
    ItemGone,
    ItemRefused,
    receive_to_reader,
)
from pdpp_sources.dav.dav_requests import KINDS, DavKind
from pdpp_sources.dav.dav_session import STEP_SECONDS, DavSession, NotAnswered
from pdpp_sources.message_frames import send_message

_BUFFER_BYTES = 64 * 1024
FOREIGN = "foreign_item"


def read_account(session: DavSession, task: DavTask) -> None:
    """Say all that is new.  Raises: DavTrouble."""
    kind = KINDS[task.kind]
    discovery = DavDiscovery(session, kind)
    read: set[str] = set()
    for collection in _collections(session, discovery, task):
        if collection.path not in read:
            read.add(collection.path)
            _read_collection(session, kind, collection, task)
    for path in sorted(task.collections.keys() - read):
        session.say(CollectionGone(path))
        for item in sorted(task.marks):
            if item.startswith(path) and not any(item.startswith(each) for each in read):
                session.say(ItemGone(item))


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
        raise DavTrouble("dav_not_found") from None


def _of_homes(discovery: DavDiscovery, homes: list[DavHome]) -> list[DavCollection]:
    return [each for home in homes for each in discovery.collections(home)]


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


def main(files: Sequence[int], _seconds: float, memory_bytes: int) -> NoReturn:
    """Serve whoever had this process started.

    Source: `process_starter.py`.
    """
    requests, replies = os.fdopen(files[0], "rb"), os.fdopen(files[1], "wb", _BUFFER_BYTES)
    confine(Limits(STEP_SECONDS, memory_bytes))
    read_only(())
    code: str | None = MISBEHAVES
    try:
        task = receive_to_reader(requests)
        if isinstance(task, DavTask):
            signal.setitimer(signal.ITIMER_PROF, STEP_SECONDS)
            read_account(DavSession(requests, replies), task)
            code = None
    except DavTrouble as trouble:
        code = trouble.code
    except MemoryError:
        os._exit(1)
    except Exception:  # noqa: BLE001 (whatever a server makes a parser raise)
        code = MISBEHAVES
    send_message(replies, DavEnd(code))
    os._exit(0)
