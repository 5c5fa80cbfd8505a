"""The pages of passkeys: registering one, signing in with it, taking it away.

Source: docs/contract/authorization-server.md 13.6.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec
import orjson
from starlette.responses import Response

from pdpp_kernel.errors import NotFound, OwnerSessionRequired
from personal_server.console.pages import Templates
from personal_server.console.session import PageRequest, PageRoute, acting
from personal_server.console.static_files import PASSKEYS
from personal_server.granting.passkeys import Passkeys, relying_party


class PasskeyPages(msgspec.Struct, frozen=True):
    """`/owner/passkeys`."""

    passkeys: Passkeys
    pages: Templates

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        return (
            PageRoute("GET", "/owner/passkeys", self.show),
            PageRoute("POST", "/owner/passkeys", self.add),
            PageRoute("POST", "/owner/passkeys/{reference}/remove", self.remove),
        )

    def show(self, visit: PageRequest) -> Response:
        """The passkeys there are, and how to add one here."""
        fresh = visit.owner().is_fresh(self.passkeys.clock())
        options = self.passkeys.to_register(visit.origin) if fresh else None
        return self.pages.show(
            visit,
            "passkeys.html",
            {
                "passkeys": self.passkeys.listed(),
                "options": rendered(options),
                "fresh": fresh,
                "by_name": named_origin(visit.origin),
            },
            script=None if options is None else PASSKEYS,
        )

    def add(self, visit: PageRequest) -> Response:
        """Keep what the browser made.  Raises: SignInFailed, OwnerSessionRequired."""
        if not visit.owner().is_fresh(self.passkeys.clock()):
            raise OwnerSessionRequired("Sign in again to add a passkey.")
        name = visit.value("name") or ""
        self.passkeys.register(visit.origin, visit.value("passkey") or "", name, acting(visit))
        return self.pages.go(visit, "/owner/passkeys")

    def remove(self, visit: PageRequest) -> Response:
        """Take one away.  Raises: NotFound."""
        if not self.passkeys.remove(visit.path["reference"], acting(visit)):
            raise NotFound("There is no such passkey.")
        return self.pages.go(visit, "/owner/passkeys")


def rendered(options: dict[str, object] | None) -> str | None:
    """Options as a page hands them to its script."""
    return None if options is None else orjson.dumps(options).decode()


def named_origin(origin: str) -> str | None:
    """Where the same server can have passkeys, if it cannot here."""
    if relying_party(origin) is not None:
        return None
    port = urlsplit(origin).port
    return f"http://localhost{'' if port is None else f':{port}'}"
