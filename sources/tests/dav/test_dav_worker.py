"""What a whole account is read as, of servers with several homes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.dav import dav_worker
from pdpp_sources.dav.dav_messages import (
    MISBEHAVES,
    CollectionEnd,
    CollectionGone,
    CollectionSeen,
    DavHome,
    DavMessage,
    DavTask,
    ItemGone,
    KnownCollection,
)
from pdpp_sources.dav.dav_requests import KINDS
from pdpp_sources.dav.dav_session import DavSession
from pdpp_sources.dav.multistatus import DAV, DavAnswer, DavProperty

HOST = "https://dav.example.org"


@dataclass
class Homes:
    """Answers in the place of a session: how many collections each home has; none has items."""

    counts: Mapping[str, int]
    said: list[DavMessage] = field(default_factory=list[DavMessage])

    def listed(
        self, _method: str, url: str, _depth: str, _body: str
    ) -> tuple[Sequence[DavAnswer], str]:
        path = url.removeprefix(HOST)
        kind = DavProperty(names={KINDS["caldav"].collection})
        return [
            DavAnswer(f"{path}{number}/", None, {f"{DAV}resourcetype": kind})
            for number in range(self.counts.get(path, 0))
        ], url

    def say(self, message: DavMessage) -> None:
        self.said.append(message)

    def read(self, *homes: str) -> int:
        """How many collections are read of these."""
        where = [DavHome(f"{HOST}{home}", False) for home in homes]
        task = DavTask("caldav", HOST, where, {}, {})
        dav_worker.read_account(cast("DavSession", self), task)
        return sum(isinstance(each, CollectionSeen) for each in self.said)


def test_the_collections_of_all_homes_are_counted_each_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dav_worker, "MOST_COLLECTIONS", 5)
    counts = {"/a/": 3, "/b/": 2, "/c/": 1}
    assert Homes(counts).read("/a/", "/b/", "/a/") == 5
    beyond = Homes(counts)
    with pytest.raises(AccountTrouble) as trouble:
        beyond.read("/a/", "/b/", "/c/")
    assert (trouble.value.code, beyond.said) == (MISBEHAVES, [])


def test_no_collection_of_a_large_home_is_passed_over() -> None:
    assert Homes({"/a/": 1_001}).read("/a/") == 1_001


def test_what_went_with_its_collection_is_told_before_it_and_before_what_is_new() -> None:
    """A run may end behind any of these: the next one finds what is left."""
    session, known = Homes({"/a/": 1}), KnownCollection("Old", "c", "t")
    task = DavTask("caldav", HOST, [DavHome(f"{HOST}/a/", False)], {"/old/": known}, {})
    task.marks = {"/old/1.ics": "1", "/old/2.ics": "2", "/a/0/x.ics": "3"}
    dav_worker.read_account(cast("DavSession", session), task)
    gone = [ItemGone("/old/1.ics"), ItemGone("/old/2.ics"), CollectionGone("/old/")]
    assert session.said[:3] == gone
    assert session.said[3:] == [
        CollectionSeen("/a/0/", "0"),
        ItemGone("/a/0/x.ics"),
        CollectionEnd("/a/0/", "0", None, None, True, True, True),
    ]
