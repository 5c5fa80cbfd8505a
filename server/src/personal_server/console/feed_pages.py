"""Keeping accounts up to date, from a browser: sign in, choose folders, see what arrives.

Rule: a password comes by the form of a signed-in owner, and no page shows it again.
Source: docs/contract/feeds.md 8.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from pdpp_kernel.errors import InvalidRequest, InvalidState, NotFound
from pdpp_kernel.texts import Text, message
from personal_server.console.feed_views import FeedList, FeedRunner, view_of_feed
from personal_server.console.pages import Templates
from personal_server.console.session import PageRequest, PageRoute
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.feeds.feed_kinds import ADDRESS_BOOKS, CALENDARS, MAIL_KINDS, MAILBOX, SOURCES
from personal_server.feeds.feed_sentences import UNCLEAR
from personal_server.feeds.feed_states import SIGN_IN_REFUSED, FeedState
from personal_server.feeds.mail_providers import Password, mail_providers
from personal_server.feeds.oauth_providers import add_command, oauth_of
from personal_server.feeds.wanted_accounts import (
    AccountSignUps,
    SeenFolder,
    WantedAccount,
    chosen_folders,
)
from personal_server.storage.catalog import Catalogs
from personal_server.storage.feed_rows import KEEP, FeedRow

ROOT = "/owner/feeds"
MOST_SHOWN = 500
"""Folders to choose from; of an account with more, all usual ones are fetched."""
MOST_DIGITS = 9
_NEW = f"{ROOT}/new"
_KINDS = (
    (MAILBOX, message("Mail")),
    (CALENDARS, message("Calendars")),
    (ADDRESS_BOOKS, message("Contacts")),
)
REFUSED = message(
    "Your provider refused the user name or the password. It was tried once, and nothing was"
    " saved. Many providers want a password made for programs, not that of the account."
)
REFUSED_SINCE = message(
    "The server of the account refused the password. It was tried once, and is not tried again"
    " until you give another."
)
WHOSE = message(
    "You have accounts that may hold the same records. Choose the account that this fills."
)
_OF_SIGN_INS = frozenset({SIGN_IN_REFUSED, "sign_in_missing", "sign_in_ended"})
PASSWORDS: Mapping[Password, Text] = {
    Password.APP: message("needs an app password"),
    Password.OWN: message("takes the password of the account, or an app password"),
    Password.NONE: message(
        "does not let programs sign in with a password: import an export instead"
    ),
}


class FolderRow(msgspec.Struct, frozen=True):
    """A folder as the form shows it; its value carries how many mails it holds."""

    folder: SeenFolder

    @property
    def value(self) -> str:
        """What the form sends where it is ticked."""
        return f"{self.folder.mails or 0}:{self.folder.name}"


class FeedPages(msgspec.Struct, frozen=True):
    """`/owner/feeds`: a new one, and the page of each.

    Shapes: `sign_ups` makes what signs in, once it is needed.
    """

    sign_ups: Callable[[], AccountSignUps]
    feeds: FeedList
    run_feed: FeedRunner
    catalogs: Catalogs
    pages: Templates
    kinds: tuple[tuple[str, Text], ...] = _KINDS

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        one = f"{ROOT}/{{feed_id}}"
        return (
            PageRoute("GET", _NEW, self.show_form),
            PageRoute("POST", _NEW, self.add),
            PageRoute("GET", one, self.show, frozenset({"of"})),
            PageRoute("POST", f"{one}/folders", self.choose),
            PageRoute("POST", f"{one}/password", self.give_password),
            PageRoute("POST", f"{one}/account", self.fill),
            PageRoute("POST", f"{one}/check", self.check_now),
            PageRoute("POST", f"{one}/remove", self.remove),
        )

    def show_form(self, visit: PageRequest) -> Response:
        """Where an account is added."""
        return self._form(visit, WantedAccount(address="", password="", kinds=frozenset({MAILBOX})))

    def add(self, visit: PageRequest) -> Response:
        """Sign in once, and keep the feeds; the form again where that did not work."""
        wanted = WantedAccount(
            address=(visit.value("address") or "").strip(),
            password=visit.value("password") or "",
            kinds=frozenset(value for name, value in visit.form if name == "kind"),
            provider=visit.value("provider") or "",
            host=(visit.value("host") or "").strip(),
            starttls=visit.value("starttls") is not None,
            user=(visit.value("user") or "").strip(),
            caldav=(visit.value("caldav") or "").strip(),
            carddav=(visit.value("carddav") or "").strip(),
            jmap=(visit.value("jmap") or "").strip(),
            token=visit.value("token") is not None,
        )
        try:
            added = self.sign_ups().add(wanted)
        except (InvalidRequest, InvalidState) as error:
            refused = error.members.get("feed_code") == SIGN_IN_REFUSED
            step = error.members.get("next_step")
            return self._form(
                visit,
                replace(wanted, password=""),
                problem=REFUSED if refused else error.text,
                step=None if refused or step is None else str(step),
                status=error.status,
            )
        return self.pages.go(visit, f"{ROOT}/{added[0].feed_id}")

    def show(self, visit: PageRequest) -> Response:
        """The folders to choose from, or how far it has come.  Raises: NotFound."""
        feed = self._feed(visit)
        values: dict[str, object] = {
            "feed": view_of_feed(feed),
            "is_mailbox": feed.kind in MAIL_KINDS,
            "accounts": feed.connection_ids,
            "csrf": visit.owner().csrf,
        }
        if _is_choosing(feed):
            return self._choosing(visit, feed, values)
        first = feed.succeeded_at_ns is None
        of = visit.query.get("of", "")
        problem = {SIGN_IN_REFUSED: REFUSED_SINCE, UNCLEAR: WHOSE}.get(feed.code or "")
        wants_sign_in = feed.state == FeedState.NEEDS_YOU and feed.code in _OF_SIGN_INS
        values |= {
            "choices": self._accounts(feed) if feed.code == UNCLEAR else (),
            "asks_account": feed.code == UNCLEAR,
            "items": self.sign_ups().items(feed),
            "of": int(of) if of.isdecimal() and len(of) <= MOST_DIGITS else 0,
            "is_under_way": feed.state == FeedState.RUNNING
            or (feed.state == FeedState.WAITING and first),
            "is_first": first,
            "state": feed.state,
            "problem": problem,
            "wants_sign_in": wants_sign_in,
            "command": self.sign_ups().sign_in_command(feed) if wants_sign_in else None,
        }
        return self.pages.show(visit, "feed.html", values)

    def choose(self, visit: PageRequest) -> Response:
        """Begin with the folders that were ticked.  Raises: NotFound, InvalidRequest."""
        feed = self._feed(visit)
        if not _is_choosing(feed):
            return self.pages.go(visit, f"{ROOT}/{feed.feed_id}")
        ticked: dict[str, int] = {}
        for name, value in visit.form:
            if name == "folder":
                count, _, folder = value.partition(":")
                ticked[folder] = int(count) if count.isdecimal() else 0
        if not ticked:
            raise InvalidRequest("Choose a folder first.", param="folder")
        usual = [value for name, value in visit.form if name == "usual"]
        deletions = visit.value("deletions") or KEEP
        self.sign_ups().choose(feed, chosen_folders(ticked, usual), deletions)
        return self.pages.go(visit, f"{ROOT}/{feed.feed_id}?of={sum(ticked.values())}")

    def give_password(self, visit: PageRequest) -> Response:
        """Keep another password.  Raises: NotFound, InvalidRequest, InvalidState."""
        feed = self._feed(visit)
        self.sign_ups().give_password(feed, visit.value("password") or "")
        return self.pages.go(visit, f"{ROOT}/{feed.feed_id}")

    def fill(self, visit: PageRequest) -> Response:
        """Go on into an account.  Raises: NotFound, InvalidRequest, InvalidState."""
        feed, chosen = self._feed(visit), visit.value("account") or ""
        account = (visit.value("name") or "").strip() if chosen == "new" else chosen
        self.sign_ups().fill(feed, account)
        return self.pages.go(visit, f"{ROOT}/{feed.feed_id}")

    def check_now(self, visit: PageRequest) -> Response:
        """Have it look now.  Raises: NotFound, InvalidState."""
        feed = self._feed(visit)
        self.run_feed(feed.feed_id)
        return self.pages.go(visit, f"{ROOT}/{feed.feed_id}")

    def remove(self, visit: PageRequest) -> Response:
        """Forget it; its records stay.  Raises: NotFound."""
        self.sign_ups().remove(self._feed(visit))
        return self.pages.go(visit, "/owner/records")

    def _form(
        self,
        visit: PageRequest,
        wanted: WantedAccount,
        *,
        problem: Text | None = None,
        step: Text | None = None,
        status: int = 200,
    ) -> Response:
        values = {
            "wanted": wanted,
            "kinds": self.kinds,
            "providers": mail_providers(),
            "passwords": PASSWORDS,
            "commands": {
                name: add_command(each.sample, oauth)
                for name, each in mail_providers().items()
                if each.password is Password.NONE and (oauth := oauth_of(each.imap))
            },
            "has_keyring": self.sign_ups().has_keyring,
            "problem": problem,
            "step": step,
            "csrf": visit.owner().csrf,
        }
        return self.pages.show(visit, "feed_new.html", values, status=status)

    def _choosing(self, visit: PageRequest, feed: FeedRow, values: dict[str, object]) -> Response:
        problem: Text | None = None
        seen: list[SeenFolder] = []
        try:
            seen = self.sign_ups().folders(feed)
        except InvalidState as error:
            refused = error.members.get("feed_code") == SIGN_IN_REFUSED
            problem = REFUSED_SINCE if refused else error.text
        values |= {
            "folders": [FolderRow(each) for each in seen[:MOST_SHOWN]],
            "problem": problem,
            "command": None if problem is None else self.sign_ups().sign_in_command(feed),
        }
        return self.pages.show(visit, "feed_folders.html", values)

    def _accounts(self, feed: FeedRow) -> list[Connection]:
        """Those of the source that reads what the feed fetches."""
        source = SOURCES.get(feed.kind)
        return [
            each
            for each in self.catalogs().connections
            if each.connector_key == source and each.status is not ConnectionStatus.REVOKED
        ]

    def _feed(self, visit: PageRequest) -> FeedRow:
        feed_id = visit.path["feed_id"]
        for each in self.feeds():
            if each.feed_id == feed_id:
                return each
        raise NotFound("There is no such feed.", next_step="Go back to the list of sources.")


def _is_choosing(feed: FeedRow) -> bool:
    """Whether its folders are to be chosen before it runs for the first time."""
    is_new = feed.succeeded_at_ns is None and feed.code in (None, SIGN_IN_REFUSED)
    return feed.kind in MAIL_KINDS and feed.state == FeedState.PAUSED and is_new
