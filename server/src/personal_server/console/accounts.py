"""The page of one account: its name, what it holds, what brought it, and an end to it.

Source: docs/contract/authorization-server.md 13.5, docs/contract/resource-server.md 14.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec
from starlette.responses import Response

from pdpp_kernel.errors import (
    ConfirmationRequired,
    ConnectionNotFound,
    InvalidRequest,
    NotFound,
)
from pdpp_kernel.source_item import Data
from pdpp_kernel.texts import Text, day_of_text, message
from pdpp_kernel.values import instant_ns
from personal_server.collecting.connection_status import move_connection, possible_actions
from personal_server.collecting.connections import rename_connection
from personal_server.collecting.imports import DAMAGE
from personal_server.collecting.receipts import receipts_of
from personal_server.console.account_receipts import AccountReceipt, ReceiptPages
from personal_server.console.feed_views import FeedList, FeedRunner, feeds_of_account
from personal_server.console.pages import Templates
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.sources import AccountView, account_view
from personal_server.domain.connection import ConnectionStatus
from personal_server.granting.holdings import list_held
from personal_server.reading.ports import ReadPorts
from personal_server.storage.catalog import Catalogs
from personal_server.storage.ports.authorization_store import AuthorizationStore, HeldQuery
from personal_server.storage.ports.whole_store import RecordStore

HELD_READ, REFUSED_SHOWN = 200, 20
ROOT = "/owner/sources"
BUTTONS = {
    "pause": (
        message("Stop imports"),
        message("Then nobody can add records to this account; apps can still read it."),
    ),
    "resume": (
        message("Allow imports"),
        message("Then imports and programs can add records to this account again."),
    ),
    "revoke": (
        message("Block all apps"),
        message("Then no app can read this account; your records stay."),
    ),
    "reactivate": (
        message("Unblock apps"),
        message("Then apps with access can read this account again."),
    ),
}


class ImportLine(msgspec.Struct, frozen=True):
    """One import of an account."""

    at_ns: int | None
    name: str
    new: int
    updated: int
    earliest: Text | None
    latest: Text | None
    skipped: Mapping[str, int]

    @property
    def is_damaged(self) -> bool:
        """Whether parts of the file could not be read."""
        return not DAMAGE.isdisjoint(self.skipped)


class AccountPages(msgspec.Struct, frozen=True):
    """`/owner/sources/{connection_id}` and what its buttons do."""

    authorization: AuthorizationStore
    reads: ReadPorts
    catalogs: Catalogs
    pages: Templates
    clock: Callable[[], int]
    receipts: ReceiptPages
    has_uploads: bool = False
    feeds: FeedList = tuple
    run_feed: FeedRunner = str

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        one = f"{ROOT}/{{connection_id}}"
        return (
            PageRoute("GET", one, self.show),
            PageRoute("POST", f"{one}/name", self.rename),
            PageRoute("POST", f"{one}/status", self.move),
            PageRoute("POST", f"{one}/erase", self.erase),
            PageRoute("POST", f"{one}/check", self.check_now),
        )

    def show(self, visit: PageRequest) -> Response:
        """The account.  Raises: ConnectionNotFound."""
        view, store = self._view(visit), self.reads.store
        connection_id = view.connection.connection_id
        refused = store.rejections(connection_id, REFUSED_SHOWN, None)
        values = {
            "account": view,
            "imports": list(_imports(store, connection_id)),
            "alike": [
                each
                for each in self.catalogs().connections
                if each.connector_key == view.connection.connector_key
                and each.connection_id != connection_id
                and each.status is not ConnectionStatus.REVOKED
            ],
            "uploads": self.has_uploads,
            "feeds": list(feeds_of_account(self.feeds(), connection_id)),
            "refused": [rejection for _, rejection in refused],
            "actions": [(a, *BUTTONS[a]) for a in possible_actions(view.connection.status)],
            "csrf": visit.owner().csrf,
        }
        return self.pages.show(visit, "account.html", values)

    def rename(self, visit: PageRequest) -> Response:
        """Give it a name.  Raises: ConnectionNotFound, InvalidRequest."""
        connection_id = visit.path["connection_id"]
        name = (visit.value("name") or "").strip() or None
        rename_connection(self.reads.store, connection_id, name, self.clock())
        return self.pages.go(visit, f"{ROOT}/{connection_id}")

    def move(self, visit: PageRequest) -> Response:
        """Pause, resume, close or open it.  Raises: ConnectionNotFound, InvalidState."""
        connection_id, action = visit.path["connection_id"], visit.value("action") or ""
        if action not in BUTTONS:
            raise InvalidRequest("Choose one of the actions on this page.", param="action")
        move_connection(self.reads.store, connection_id, action, self.clock())
        return self.pages.go(visit, f"{ROOT}/{connection_id}")

    def check_now(self, visit: PageRequest) -> Response:
        """Have a feed of the account look now.  Raises: NotFound, InvalidState."""
        connection_id, feed_id = visit.path["connection_id"], visit.value("feed")
        if feed_id not in {e.feed_id for e in feeds_of_account(self.feeds(), connection_id)}:
            raise NotFound("This account has no such feed.")
        self.run_feed(str(feed_id))
        return self.pages.go(visit, f"{ROOT}/{connection_id}")

    def erase(self, visit: PageRequest) -> Response:
        """Erase it, and show the receipt.

        Raises: ConnectionNotFound, ConnectionBusy, ConfirmationRequired.
        """
        view, now_ns = self._view(visit), self.clock()
        connection_id = view.connection.connection_id
        if visit.value("confirm") != connection_id:
            raise ConfirmationRequired(
                "Nothing was erased, because the box was not ticked.",
                param="confirm",
                next_step="Go back, tick the box, and erase again.",
            )
        count = self.reads.store.erase_connection(connection_id, now_ns)
        account = (connection_id, view.name)
        receipt = AccountReceipt("erase", account, None, moved=0, erased=count, done_at_ns=now_ns)
        return self.receipts.go(visit, receipt)

    def _view(self, visit: PageRequest) -> AccountView:
        connection_id, catalog = visit.path["connection_id"], self.catalogs()
        found = [c for c in catalog.connections if c.connection_id == connection_id]
        if not found:
            raise ConnectionNotFound("There is no such account.")
        with self.reads.snapshot(None) as snapshot:
            stored, collections = snapshot.stored_streams(), snapshot.collections()
        with self.authorization.read() as reader:
            holdings = list_held(reader, HeldQuery(self.clock(), lasts=True), HELD_READ)
        return account_view(found[0], catalog, stored, collections, holdings)


def _imports(store: RecordStore, connection_id: str) -> Iterator[ImportLine]:
    """The imports of this account, newest first."""
    for receipt in reversed(receipts_of(store, connection_id)):
        streams: list[Data] = list(receipt["streams"].values())
        yield ImportLine(
            at_ns=instant_ns(str(receipt["imported_at"])),
            name=str(receipt["name"]),
            new=sum(each["new"] for each in streams),
            updated=sum(each["updated"] for each in streams),
            earliest=_day(receipt.get("earliest")),
            latest=_day(receipt.get("latest")),
            skipped=receipt.get("skipped", {}),
        )


def _day(date: str | None) -> Text | None:
    return None if date is None else day_of_text(date)
