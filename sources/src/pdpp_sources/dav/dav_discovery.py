"""Where the calendars or address books of an account are, beginning with any address of it.

Source: RFC 6764, 6; RFC 5397; RFC 4791, 6.2.1; RFC 6352, 7.1.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote, urljoin, urlsplit

import msgspec

from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.dav.dav_messages import DavHome
from pdpp_sources.dav.dav_paths import item_path, path_of
from pdpp_sources.dav.dav_requests import CTAG, DavKind, propfind
from pdpp_sources.dav.dav_session import DavSession, NotAnswered
from pdpp_sources.dav.multistatus import DAV, DavAnswer

LONGEST_NAME = 200
_PRINCIPAL, _TYPE = f"{DAV}current-user-principal", f"{DAV}resourcetype"
_SYNC = f"{DAV}sync-collection"


class DavCollection(msgspec.Struct):
    """A calendar or an address book as its server lists it."""

    url: str
    path: str
    name: str
    ctag: str | None = None
    token: str | None = None
    syncs: bool = False


@dataclass(slots=True)
class DavDiscovery:
    """Finds the homes of one kind."""

    session: DavSession
    kind: DavKind
    _asked: set[str] = field(default_factory=set[str], init=False)

    def homes(self, url: str) -> list[DavHome]:
        """The homes, or the collection that the address itself is.  Raises: AccountTrouble."""
        begins = [url, urljoin(url, self.kind.well_known), urljoin(url, "/")]
        if urlsplit(url).path in ("", "/"):
            begins = begins[1:]
        for begin in begins:
            found = self._from(begin)
            if found:
                return found
        raise AccountTrouble("dav_not_found")

    def _from(self, url: str) -> list[DavHome]:
        """What an address leads to, directly or by the principal that it names."""
        names = ["d:resourcetype", "d:current-user-principal", self.kind.spelled_home]
        for _ in range(3):
            if url in self._asked:
                return []
            self._asked.add(url)
            try:
                answers, at = self.session.listed("PROPFIND", url, "0", propfind(names))
            except NotAnswered:
                return []
            answer = next(iter(answers), DavAnswer())
            if self.kind.collection in _names(answer):
                return [DavHome(at, True)]
            homes = _hrefs(answer, self.kind.home)
            if homes:
                return [DavHome(urljoin(at, home), False) for home in homes]
            principals = _hrefs(answer, _PRINCIPAL)
            if not principals:
                return []
            url = urljoin(at, principals[0])
        return []

    def collections(self, home: DavHome) -> Iterator[DavCollection]:
        """The collections of a home, as it lists them.  Raises: NotAnswered, AccountTrouble."""
        names = ["d:resourcetype", "d:displayname", "d:sync-token", "s:getctag"]
        names.append("d:supported-report-set")
        depth = "0" if home.is_collection else "1"
        answers, at = self.session.listed("PROPFIND", home.url, depth, propfind(names))
        for answer in answers:
            if self.kind.collection not in _names(answer):
                continue
            is_own = path_of(answer.href) == path_of(at)
            if not (home.is_collection and is_own) and item_path(answer.href, at) is None:
                continue
            path = path_of(answer.href)
            path = path if path.endswith("/") else f"{path}/"
            yield _collection(answer, urljoin(at, answer.href), path)


def _collection(answer: DavAnswer, url: str, path: str) -> DavCollection:
    name = " ".join((answer.text(f"{DAV}displayname") or "").split())
    reports = answer.properties.get(f"{DAV}supported-report-set")
    return DavCollection(
        url if url.endswith("/") else f"{url}/",
        path,
        (name or unquote(path.rstrip("/").rpartition("/")[2]))[:LONGEST_NAME],
        answer.word(CTAG),
        answer.word(f"{DAV}sync-token"),
        reports is None or _SYNC in reports.names,
    )


def _names(answer: DavAnswer) -> set[str]:
    found = answer.properties.get(_TYPE)
    return found.names if found is not None else set()


def _hrefs(answer: DavAnswer, name: str) -> list[str]:
    found = answer.properties.get(name)
    return [href for href in found.hrefs if href] if found is not None else []
