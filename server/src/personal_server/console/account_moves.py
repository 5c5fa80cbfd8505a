"""Pages that join two accounts of a source, or take out of one what another holds as well.

Rule: what would move is counted and who reads it named before; what was counted is what is done.
Source: docs/contract/authorization-server.md 13.5, docs/contract/resource-server.md 14.2.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from typing import Final, Literal

import msgspec
from starlette.responses import Response

from pdpp_kernel.errors import (
    ConfirmationRequired,
    ConnectionNotFound,
    InvalidRequest,
    InvalidState,
)
from personal_server.collecting.account_moves import (
    SharedRecords,
    merge_accounts,
    merge_preview,
    part_accounts,
    part_preview,
)
from personal_server.collecting.imports import ImportPorts, record_counts
from personal_server.console.account_receipts import AccountReceipt, ReceiptPages
from personal_server.console.accounts import HELD_READ, ROOT
from personal_server.console.pages import Templates
from personal_server.console.session import PageRequest, PageRoute
from personal_server.domain.connection import Connection
from personal_server.granting.holdings import Holding, list_held
from personal_server.reading.ports import ReadPorts
from personal_server.storage.catalog import Catalogs
from personal_server.storage.ports.authorization_store import AuthorizationStore, HeldQuery

MOST_MOVED = 20_000
"""Records that are counted and moved while a page is waited for; more is left to the command."""
MERGE: Final = "merge"
SPLIT: Final = "split"


class AccountMovePages(msgspec.Struct, frozen=True):
    """`/owner/sources/{connection_id}/merge` and `…/split`: what would happen, and doing it."""

    authorization: AuthorizationStore
    reads: ReadPorts
    catalogs: Catalogs
    pages: Templates
    clock: Callable[[], int]
    receipts: ReceiptPages

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        other = frozenset({"other"})
        return tuple(
            route
            for kind, do in ((MERGE, self.merge), (SPLIT, self.split))
            for path in (f"{ROOT}/{{connection_id}}/{kind}",)
            for route in (
                PageRoute("GET", path, partial(self.show, kind), other),
                PageRoute("POST", path, do),
            )
        )

    def show(self, kind: str, visit: PageRequest) -> Response:
        """What would move, and who reads it.

        Raises: ConnectionNotFound, InvalidRequest, InvalidState.
        """
        account, other = self._two(visit, visit.query.get("other"))
        counted = self._counted(kind, account, other)
        with self.authorization.read() as reader:
            holdings = list_held(reader, HeldQuery(self.clock(), lasts=True), HELD_READ + 1)
        ids = (account.connection_id, other.connection_id)
        arguments = ids if kind == MERGE else (ids[0], "--from", ids[1])
        command = shlex.join(("connection", kind, *arguments))
        values = {
            "kind": kind,
            "one": account,
            "other": other,
            "counted": counted,
            "most": MOST_MOVED,
            "readers": [holding for holding in holdings[:HELD_READ] if _reads(holding, ids[0])],
            "other_readers": [
                holding for holding in holdings[:HELD_READ] if _reads(holding, ids[1])
            ],
            "more_readers": len(holdings) > HELD_READ,
            "command": command,
            "csrf": visit.owner().csrf,
        }
        return self.pages.show(visit, "account_move.html", values)

    def merge(self, visit: PageRequest) -> Response:
        """Join them, and show the receipt.

        Raises: ConnectionNotFound, ConfirmationRequired, InvalidState, ConnectionBusy.
        """
        account, other = self._agreed(MERGE, visit)
        moved_count, erased = merge_accounts(self._ports, account, other)
        return self._receipt(visit, MERGE, (account, other), moved_count, erased)

    def split(self, visit: PageRequest) -> Response:
        """Take out of one what the other holds, and show the receipt.

        Raises: ConnectionNotFound, ConfirmationRequired, InvalidState.
        """
        account, other = self._agreed(SPLIT, visit)
        moved_count = part_accounts(self._ports, account, other)
        return self._receipt(visit, SPLIT, (account, other), moved_count, moved_count)

    def _receipt(
        self,
        visit: PageRequest,
        kind: Literal["merge", "split"],
        accounts: tuple[Connection, Connection],
        moved: int,
        erased: int,
    ) -> Response:
        one, other = (
            (account.connection_id, account.display_name or account.connection_id)
            for account in accounts
        )
        receipt = AccountReceipt(kind, one, other, moved, erased, self.clock())
        return self.receipts.go(visit, receipt)

    @property
    def _ports(self) -> ImportPorts:
        return ImportPorts(self.reads.store, self.clock, self.reads.random_bytes)

    def _two(self, visit: PageRequest, other_id: str | None) -> tuple[Connection, Connection]:
        by_id = {connection.connection_id: connection for connection in self.catalogs().connections}
        account, other = by_id.get(visit.path["connection_id"]), by_id.get(other_id or "")
        if account is None:
            raise ConnectionNotFound("There is no such account.")
        if other is None:
            raise InvalidRequest(
                "Choose the other account to merge with or compare to.", param="other"
            )
        return account, other

    def _counted(self, kind: str, account: Connection, other: Connection) -> SharedRecords | None:
        """What would move; `None` where that is more than a page can wait for."""
        walked = account if kind == MERGE else other
        if sum(record_counts(self.reads.store, walked.connection_id).values()) > MOST_MOVED:
            return None
        return (merge_preview if kind == MERGE else part_preview)(self._ports, account, other)

    def _agreed(self, kind: str, visit: PageRequest) -> tuple[Connection, Connection]:
        """The two accounts, if the owner agreed to what is there now."""
        account, other = self._two(visit, visit.value("other"))
        if visit.value("confirm") != account.connection_id:
            raise ConfirmationRequired(
                "Nothing was changed, because the box was not ticked.",
                param="confirm",
                next_step="Go back, tick the box, and press the button again.",
            )
        counted = self._counted(kind, account, other)
        if counted is None or visit.value("count") != f"{counted.held} {counted.shared}":
            raise InvalidState(
                (
                    "Nothing was changed, because records were added or removed since "
                    "you opened the page."
                ),
                next_step="Go back, reload the page, and look at the new counts.",
            )
        return account, other


def _reads(holding: Holding, connection_id: str) -> bool:
    """Whether it gives something of an account, now or once it goes on."""
    streams = (stream for grant in holding.living_grants for stream in grant.streams)
    return any(connection_id in stream.instance_ids for stream in streams)
