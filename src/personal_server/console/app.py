"""The console put together: every page on its frame.  The composition root mounts it."""

from __future__ import annotations

from dataclasses import dataclass

from personal_server.console.assets import ASSET_ROUTES
from personal_server.console.consent_page import ConsentPages
from personal_server.console.frame import Frame
from personal_server.console.pages import Pages
from personal_server.console.sign_in import SignInPages
from personal_server.console.throttle import SignInThrottle
from personal_server.operations.evidence import EvidenceReader
from personal_server.operations.granting import Granting
from personal_server.operations.signing_in import Clock, OwnerSignIn


@dataclass(frozen=True, slots=True)
class ConsoleParts:
    """What the pages stand on."""

    server_name: str
    clock: Clock
    sign_in: OwnerSignIn
    granting: Granting
    evidence: EvidenceReader


def console_app(parts: ConsoleParts) -> Frame:
    """The ASGI application of `frame.SEGMENTS`."""
    pages = Pages(parts.server_name)
    sign_in = SignInPages(parts.sign_in, pages, SignInThrottle(parts.clock))
    consent = ConsentPages(parts.granting, parts.evidence, pages, parts.clock)
    routes = (*ASSET_ROUTES, *sign_in.routes(), *consent.routes())
    return Frame(parts.sign_in, pages, routes)
