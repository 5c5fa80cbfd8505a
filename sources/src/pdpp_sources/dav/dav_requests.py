"""The bodies of the requests that read a DAV account.

Source: RFC 4791, 7.9; RFC 4918, 9.1; RFC 6352, 8.7; RFC 6578, 3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from xml.sax.saxutils import escape

import msgspec

from pdpp_sources.dav.multistatus import CALENDAR, CONTACTS

_HEAD = '<?xml version="1.0" encoding="utf-8"?>'
_NAMESPACES = (
    'xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"'
    ' xmlns:p="urn:ietf:params:xml:ns:carddav" xmlns:s="http://calendarserver.org/ns/"'
)
CTAG = "http://calendarserver.org/ns/ getctag"


class DavKind(msgspec.Struct, frozen=True):
    """What differs between calendars and address books.

    Shapes: names of elements with their namespaces, as the parser gives them, and their prefixed
        spelling in requests.
    """

    collection: str
    home: str
    data: str
    spelled_home: str
    spelled_data: str
    multiget: str
    well_known: str
    begins: bytes


KINDS: Mapping[str, DavKind] = MappingProxyType(
    {
        "caldav": DavKind(
            f"{CALENDAR}calendar",
            f"{CALENDAR}calendar-home-set",
            f"{CALENDAR}calendar-data",
            "c:calendar-home-set",
            "c:calendar-data",
            "c:calendar-multiget",
            "/.well-known/caldav",
            b"BEGIN:VCALENDAR",
        ),
        "carddav": DavKind(
            f"{CONTACTS}addressbook",
            f"{CONTACTS}addressbook-home-set",
            f"{CONTACTS}address-data",
            "p:addressbook-home-set",
            "p:address-data",
            "p:addressbook-multiget",
            "/.well-known/carddav",
            b"BEGIN:VCARD",
        ),
    }
)


def propfind(names: Iterable[str]) -> str:
    """Ask for properties, by their prefixed names."""
    asked = "".join(f"<{name}/>" for name in names)
    return f"{_HEAD}<d:propfind {_NAMESPACES}><d:prop>{asked}</d:prop></d:propfind>"


def multiget(kind: DavKind, hrefs: Iterable[str]) -> str:
    """Ask for items, by their addresses."""
    asked = "".join(f"<d:href>{escape(href)}</d:href>" for href in hrefs)
    properties = f"<d:prop><d:getetag/><{kind.spelled_data}/></d:prop>"
    return f"{_HEAD}<{kind.multiget} {_NAMESPACES}>{properties}{asked}</{kind.multiget}>"


def sync_collection(token: str) -> str:
    """Ask what changed since a token."""
    return (
        f"{_HEAD}<d:sync-collection {_NAMESPACES}><d:sync-token>{escape(token)}</d:sync-token>"
        "<d:sync-level>1</d:sync-level><d:prop><d:getetag/></d:prop></d:sync-collection>"
    )
