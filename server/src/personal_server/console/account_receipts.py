"""Receipts of what was done to an account: erased, merged, or parted from another.

Rule: a receipt has an address of its own, which may be loaded again and kept.  The address holds,
sealed, what the page says: of what was erased the server itself keeps not even the name.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
from starlette.responses import Response

from pdpp_kernel.errors import NotFound
from personal_server.console.pages import Templates
from personal_server.console.session import PageRequest, PageRoute
from personal_server.domain.cursor import MAX_TOKEN_CHARS, Sealer, TokenUse

ROOT = "/owner/receipts"

BackupsBefore = Callable[[int], Sequence[str]]
"""The backups kept now that were made before a moment.  Units: nanoseconds."""


class AccountReceipt(msgspec.Struct, frozen=True):
    """What was done, and to whom.

    Shapes: an account is its id and its name; `other` is the one that holds what was moved or taken
        out, `moved` how many records came there, `erased` how many are gone from the first.
    """

    kind: Literal["erase", "merge", "split"]
    account: tuple[str, str]
    other: tuple[str, str] | None
    moved: int
    erased: int
    done_at_ns: int


class ReceiptPages(msgspec.Struct, frozen=True):
    """`/owner/receipts/{receipt}`."""

    sealer: Sealer
    pages: Templates
    kept_backups: BackupsBefore

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        return (PageRoute("GET", f"{ROOT}/{{receipt}}", self.show),)

    def go(self, visit: PageRequest, receipt: AccountReceipt) -> Response:
        """Send the browser to a receipt, so that a reload does nothing again."""
        sealed = self.sealer.seal(TokenUse.RECEIPT, "", msgspec.msgpack.encode(receipt))
        return self.pages.go(visit, f"{ROOT}/{sealed}")

    def show(self, visit: PageRequest) -> Response:
        """What was done, and which of the backups kept now still hold what was before.

        Raises: NotFound.
        """
        token = visit.path["receipt"]
        content = (
            self.sealer.open(TokenUse.RECEIPT, "", token) if len(token) <= MAX_TOKEN_CHARS else None
        )
        if content is None:
            raise NotFound(
                "This server did not make a receipt with this address.",
                next_step="See Records for the accounts that are here now.",
            )
        receipt = msgspec.msgpack.decode(content, type=AccountReceipt)
        values = {"receipt": receipt, "kept": list(self.kept_backups(receipt.done_at_ns))}
        return self.pages.show(visit, "account_receipt.html", values)
