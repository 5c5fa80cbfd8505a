"""Requests to a DAV server.

Source: docs/contract/feeds.md 12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pdpp_sources.dav.dav_messages import MISBEHAVES
from personal_server.app.asked_server import AskedServer

UNREACHABLE = "dav_unreachable"


@dataclass(slots=True)
class DavServer(AskedServer):
    """One account's server."""

    methods: ClassVar[frozenset[str]] = frozenset({"PROPFIND", "REPORT", "GET"})
    content_type: ClassVar[str] = "application/xml; charset=utf-8"
    most_requests: ClassVar[int] = 50_000
    unreachable: ClassVar[str] = UNREACHABLE
    misbehaves: ClassVar[str] = MISBEHAVES
