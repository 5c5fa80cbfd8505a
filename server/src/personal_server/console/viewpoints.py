"""Viewpoints: whose view of the records a page shows, and what is masked there.

Rule: an app's view is read under the authority of its grant, or of what it asks for; pages and
enforcement are those of the owner's own, only the authority differs.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import msgspec

from pdpp_kernel.errors import NotFound
from pdpp_kernel.record import key_segment
from pdpp_kernel.texts import Text, message
from pdpp_kernel.unprinted import Unprinted
from personal_server.console.session import PageRequest
from personal_server.console.words import HELD_STATUSES, cut, declared_name, field_words
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.granting.decisions import Granting
from personal_server.granting.holdings import show_held
from personal_server.reading.identification import Identifier, OpenState
from personal_server.reading.owner import (
    AuthorityReads,
    HolderReads,
    OwnerReads,
    ProspectiveReads,
)
from personal_server.reading.tokens import TokenHolder
from personal_server.storage.ports.authorization_store import AuthorizationStore

OWN = "/owner"
HELD = "/owner/access/{id}"
ASKED = "/owner/requests/{handle}"
ROOTS = (OWN, HELD, ASKED)
NAME_CHARS = 80
MASKED_SECONDS = 10.0


def records_path(root: str, connection_id: str, stream: str, key: str | None = None) -> str:
    """The page of a stream, or of one of its records, where the pages of a view begin with root."""
    path = f"{root}/records/{_segment(connection_id)}/{_segment(stream)}"
    return path if key is None else f"{path}/{key_segment(key)}"


class Viewpoint(Unprinted, frozen=True):
    """Whose view it is: where its pages begin, what reads for them, and which app it is.

    Shapes: `app` is empty for the owner's own; `back` is the page of the grant or request;
        `nothing` says why nothing at all is given, if so.
    """

    reads: AuthorityReads
    root: str = OWN
    app: str = ""
    back: str = ""
    nothing: Text = ""
    is_asked: bool = False


class Viewpoints(msgspec.Struct, frozen=True):
    """Every viewpoint that a signed-in owner can take."""

    owner: OwnerReads
    authorization: AuthorizationStore
    identify: Identifier
    open_state: OpenState
    granting: Granting
    clock: Callable[[], int]

    def of(self, visit: PageRequest) -> Viewpoint:
        """That of a visit.  Raises: NotFound, RequestClosed."""
        if "id" in visit.path:
            return self._held(visit.path["id"])
        if "handle" in visit.path:
            return self._asked(visit.path["handle"])
        return Viewpoint(self.owner)

    def masked(self, viewpoint: Viewpoint, source: ReadableSource) -> list[tuple[str, str]]:
        """The fields that an app does not get, by name and in words."""
        if not viewpoint.app:
            return []
        with self.owner.open(MASKED_SECONDS) as (_, owner):
            whole = source_of(owner, *source.order)
        return [(name, field_words(name)) for name in whole.fields if name not in source.fields]

    def _held(self, held_id: str) -> Viewpoint:
        with self.authorization.read() as reader:
            holding = show_held(reader, held_id, self.clock())
        if holding is None:
            raise NotFound(
                "There is no such access.", next_step="The page Access lists who has access."
            )
        is_package = holding.kind == "mcp_package"
        holder = TokenHolder(
            holding.client_id,
            grant_id=None if is_package else holding.id,
            package_id=holding.id if is_package else None,
        )
        reads = HolderReads(self.owner.ports, self.identify, self.open_state, holder)
        back = f"/owner/access/{_segment(holding.id)}"
        gives = holding.status in ("active", "waiting")  # what waits is read once it is collected
        status = HELD_STATUSES.get(holding.status, holding.status)
        nothing: Text = "" if gives else message("this access is %(status)s", status=status)
        return Viewpoint(reads, back, cut(holding.title, NAME_CHARS), back, nothing)

    def _asked(self, request_id: str) -> Viewpoint:
        review = self.granting.asked(request_id)
        owner, client = self.owner, review.asked.client
        reads = ProspectiveReads(owner.ports, owner.declarations, review.prospective())
        return Viewpoint(
            reads,
            root=f"/owner/requests/{_segment(request_id)}",
            app=cut(str(review.asked.display.get("name") or client.client_id), NAME_CHARS),
            back=f"/consent/{_segment(request_id)}",
            is_asked=True,
        )


def source_of(authority: ReadAuthority, connection_id: str, stream: str) -> ReadableSource:
    """A stream that this authority reads.  Raises: NotFound."""
    found = (each for each in authority.sources if each.order == (connection_id, stream))
    source = next(found, None)
    if source is None:
        raise NotFound("This server has no such records.")
    return source


def account_name(source: ReadableSource) -> str:
    """What the owner calls the account of a stream."""
    return source.display_name or declared_name(source.source_name or "") or source.connection_id


def _segment(text: str) -> str:
    return quote(text, safe="")
