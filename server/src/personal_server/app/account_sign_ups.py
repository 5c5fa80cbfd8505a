"""Feeds as their owners add them, by command or on a page: where an account is, its password, and
the look at its folders.

Rule: the password goes to the server of the account and into the place where feeds keep theirs, and
nowhere else; a page tries it once.
Source: docs/contract/feeds.md 8, 8.1 and 10.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import BoundedSemaphore, Timer

import msgspec
from msgspec.structs import asdict

from pdpp_kernel.errors import InvalidRequest, InvalidState, PersonalServerError
from pdpp_kernel.texts import Text, message
from pdpp_sources.mailbox_messages import AskMark, FolderSeen, LeaveMailbox, SignIn
from pdpp_sources.mailbox_process import WireCount, mailbox_process
from personal_server.app.dav_ledger import KnownAccount
from personal_server.app.dav_runs import USUAL_EVERY_SECONDS as USUAL_DAV_SECONDS
from personal_server.app.feed_imports import FOLDER
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.feed_sign_ins import (
    new_password,
    provider_of_tokens,
    require_password,
    sign_in_command,
)
from personal_server.app.feeding import feed_store
from personal_server.app.mailbox_runs import MailPlace
from personal_server.app.mailbox_talk import ask, folders_of, sign_in_to
from personal_server.app.stores import Stores
from personal_server.app.web_places import WebPlace
from personal_server.feeds import feed_states
from personal_server.feeds.feed_kinds import (
    ADDRESS_BOOKS,
    CALENDARS,
    DAV_KINDS,
    JMAP,
    MAIL_KINDS,
    MAILBOX,
)
from personal_server.feeds.feed_schedule import USUAL_EVERY_SECONDS
from personal_server.feeds.feed_sentences import what_to_do
from personal_server.feeds.feed_states import SIGN_IN_REFUSED, FeedState
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.feeds.mail_providers import (
    MailProvider,
    Password,
    mail_providers,
    provider_of,
)
from personal_server.feeds.oauth_providers import add_command, oauth_of
from personal_server.feeds.wanted_accounts import SeenFolder, WantedAccount
from personal_server.storage.feed_rows import FEED_ID, FOLLOW, KEEP, FeedRow
from personal_server.storage.sql.care.feed_mails import SqlFeedMails

LOOK_SECONDS = 30.0
LOOKS_AT_ONCE = 2
"""More would take the workers that answer pages, while a server lets them wait."""
MOST_ASKED = 100
"""Folders whose mails are counted one by one."""
MOST_CHARACTERS = 300
_CALLED = {CALENDARS: "calendars", ADDRESS_BOOKS: "contacts"}
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_looks = BoundedSemaphore(LOOKS_AT_ONCE)


class NewFeed(msgspec.Struct, frozen=True, kw_only=True):
    """A feed as its owner asks for it; one that is paused waits for its folders to be chosen."""

    name: str
    kind: str
    place: str
    layout: str
    account: str | None
    every_seconds: int
    deletions: str = KEEP
    chosen: tuple[str, ...] = ()
    state: str = FeedState.WAITING
    sign_in_ends_ns: int | None = None

    def added(self, stores: Stores, password: str | None = None) -> FeedRow:
        """Keep it, due now.  Raises: InvalidState where there is one of its name or place.

        The password first: the server that runs may begin as soon as the feed is there.
        """
        now_ns = stores.clock()
        row = FeedRow(
            **asdict(self),
            feed_id=f"{FEED_ID}{stores.random_bytes(12).hex()}",
            created_at_ns=now_ns,
            due_at_ns=now_ns,
            provider=provider_of_tokens(password),
        )
        secrets = FeedSecrets.of(stores)
        if password is not None:
            secrets.keep(row, password)
        try:
            feed_store(stores).add_feed(row)
        except PersonalServerError:
            secrets.forget(row)
            raise
        return row


def mailbox_place(
    address: str,
    *,
    host: str | None = None,
    user: str | None = None,
    port: int | None = None,
    starttls: bool = False,
    provider: MailProvider | None = None,
) -> MailPlace:
    """Where a mailbox is: at the host that was named, also as HOST:PORT, else where its provider
    has it.

    Raises: InvalidRequest.
    """
    if not host:
        provider = provider or provider_of(address)
        if provider is None:
            raise InvalidRequest(
                "The mail server of this address is not known.",
                param="host",
                next_step="Name the IMAP server of the provider, such as imap.example.org.",
            )
        if provider.password is Password.NONE or provider.imap is None:
            raise InvalidRequest(
                message(
                    "%(name)s does not let programs sign in with a password.", name=provider.name
                ),
                param="host",
                next_step=_without_password(address, provider),
            )
        host, user = provider.imap, user or provider.user_of(address)
    server, _, typed = host.partition(":")
    if port is None and _PORT.fullmatch(typed):
        host, port = server, int(typed)
    try:
        return MailPlace.of(MailPlace.spelled(host, user or address, port, starttls=starttls))
    except (FetchTrouble, ValueError):
        raise InvalidRequest(
            "This is not the address of a mail server.",
            param="host",
            next_step="Name the server alone, such as imap.example.org.",
        ) from None


def _without_password(address: str, provider: MailProvider) -> Text:
    """What else there is for a mailbox of a provider that takes no password."""
    named = oauth_of(provider.imap)
    if named is None:
        return message("Import an export of the mailbox instead.")
    return message(
        "Sign in at the provider, in a terminal on the machine of the server: `pdpp %(command)s`"
        " (docs/oauth-mail.md). Or import an export of the mailbox.",
        command=add_command(address, named),
    )


def dav_place(
    kind: str, url: str, user: str | None, provider: MailProvider | None = None
) -> WebPlace:
    """Where calendars or address books are: at a URL, or of an address where its provider has them.

    Raises: InvalidRequest.
    """
    if "@" in url and "/" not in url:
        provider, user = provider or provider_of(url), user or url
        found = None
        if provider is not None:
            found = provider.caldav if kind == CALENDARS else provider.carddav
        if found is None:
            raise InvalidRequest(
                "The address does not say where its calendars or contacts are.",
                param="url",
                next_step="Give the address that the provider names for CalDAV or CardDAV.",
            )
        url = found
    if not user:
        raise InvalidRequest(
            "The name to sign in with is missing.",
            param="user",
            next_step="Give the name that you sign in with there.",
        )
    try:
        return WebPlace.typed(kind, url, user)
    except FetchTrouble:
        raise InvalidRequest(
            "This is not an https address.",
            param="url",
            next_step="Give one such as https://dav.example.org/. Without TLS only a server on"
            " 127.0.0.1 is asked.",
        ) from None


def new_mailbox(
    address: str,
    place: MailPlace | WebPlace,
    *,
    name: str | None = None,
    account: str | None = None,
    every_seconds: int = USUAL_EVERY_SECONDS,
    deletions: str = KEEP,
    chosen: tuple[str, ...] = (),
    state: str = FeedState.WAITING,
) -> NewFeed:
    """The feed of a mailbox, called after its address."""
    kind = MAILBOX if isinstance(place, MailPlace) else place.kind
    return NewFeed(
        name=name or address,
        kind=kind,
        place=place.text,
        layout=kind,
        account=account,
        every_seconds=every_seconds,
        deletions=deletions,
        chosen=chosen,
        state=state,
    )


def new_dav(
    place: WebPlace,
    *,
    name: str | None = None,
    account: str | None = None,
    every_seconds: int = USUAL_DAV_SECONDS,
    deletions: str = KEEP,
) -> NewFeed:
    """The feed of calendars or address books, called after its user."""
    return NewFeed(
        name=name or f"{place.user} {_CALLED[place.kind]}",
        kind=place.kind,
        place=place.text,
        layout=place.kind,
        account=account,
        every_seconds=every_seconds,
        deletions=deletions,
    )


def forget_feed(stores: Stores, feed: FeedRow) -> None:
    """Forget a feed with its password and its files; its records stay.  Raises: NotFound."""
    feed_store(stores).remove_feed(feed.feed_id)
    FeedSecrets.of(stores).forget(feed)
    # half a mail, names of records, a lock: each is named after the feed
    for each in (stores.data_dir / FOLDER).glob(f"{feed.feed_id}.*"):
        each.unlink(missing_ok=True)


def folders_at(place: MailPlace, sign_in: SignIn) -> list[SeenFolder]:
    """Sign in once and list the folders, those that are fetched first.  Raises: FetchTrouble."""
    with mailbox_process(place.connected(), WireCount()) as process:
        end = Timer(LOOK_SECONDS, process.kill)
        end.start()
        try:
            can = sign_in_to(process, sign_in)
            listed, fetched = folders_of(process, (), can)
            usual = [each.name for each in fetched]
            rest = [each for each in listed if each.name not in usual]
            seen: list[SeenFolder] = []
            for number, each in enumerate([*fetched, *rest]):
                mark = each.mark
                if mark is None and number < MOST_ASKED:
                    found = [
                        one
                        for one in ask(process, AskMark(each.name))
                        if isinstance(one, FolderSeen)
                    ]
                    mark = found[0].mark if found else None
                mails = None if mark is None else mark.mails
                seen.append(SeenFolder(each.name, mails, each.name in usual))
            for _ in ask(process, LeaveMailbox()):
                pass
        finally:
            end.cancel()
    return seen


class StoredSignUps(msgspec.Struct, frozen=True):
    """Signs in to accounts, and keeps their feeds in the stores."""

    stores: Stores

    @property
    def has_keyring(self) -> bool:
        """Whether this machine has a keyring."""
        return FeedSecrets.of(self.stores).keyring is not None

    def add(self, wanted: WantedAccount) -> list[FeedRow]:
        """Keep a feed of each kind, or none.  Raises: InvalidRequest, InvalidState."""
        address = wanted.address.strip()
        if "@" not in address or len(address) > MOST_CHARACTERS or not address.isprintable():
            raise InvalidRequest(
                "Type the whole address, such as ada@example.org.", param="address"
            )
        if not wanted.password or not wanted.kinds:
            missing = "password" if wanted.kinds else "kind"
            raise InvalidRequest("Something is missing.", param=missing)
        provider = mail_providers().get(wanted.provider) or provider_of(address)
        new: list[NewFeed] = []
        mailbox: MailPlace | None = None
        jmap: WebPlace | None = None
        if MAILBOX in wanted.kinds and wanted.jmap:
            from personal_server.app.jmap_sign_ups import jmap_place  # noqa: PLC0415 (few do)

            jmap = jmap_place(wanted.jmap, wanted.user or address, is_token=wanted.token)
            new.append(new_mailbox(address, jmap, state=FeedState.PAUSED))
        elif MAILBOX in wanted.kinds:
            mailbox = mailbox_place(
                address,
                host=wanted.host,
                user=wanted.user,
                starttls=wanted.starttls,
                provider=provider,
            )
            new.append(new_mailbox(address, mailbox, state=FeedState.PAUSED))
        for kind, typed in ((CALENDARS, wanted.caldav), (ADDRESS_BOOKS, wanted.carddav)):
            if kind in wanted.kinds:
                url, user = (typed, wanted.user or address) if typed else (address, wanted.user)
                new.append(new_dav(dav_place(kind, url, user, provider)))
        self._require_new(new)
        if mailbox is not None:
            self._looked(partial(folders_at, mailbox, mailbox.sign_in(wanted.password)))
        if jmap is not None:
            self._looked(_look_over_jmap(jmap, wanted.password))
        return self._kept(new, wanted.password)

    def folders(self, feed: FeedRow) -> list[SeenFolder]:
        """The folders of a mailbox; a password that was refused is not tried again.

        Raises: InvalidState.
        """
        if feed_states.is_refused(feed):
            raise _refusal(SIGN_IN_REFUSED)
        secrets = FeedSecrets.of(self.stores)
        try:
            look = _look_at(feed, secrets)
        except FetchTrouble as trouble:
            raise _refusal(trouble.code) from None
        try:
            return self._looked(look)
        except InvalidState as error:
            if error.members.get("feed_code") == SIGN_IN_REFUSED:
                feed_store(self.stores).change_feed(feed.feed_id, feed_states.refuse_look)
            raise

    def choose(self, feed: FeedRow, chosen: Sequence[str], deletions: str) -> None:
        """Begin to fetch.  Raises: InvalidState where it runs or ran."""
        if deletions not in (KEEP, FOLLOW):
            raise InvalidRequest(
                "Deleted records are either kept here, or deleted here too.", param="deletions"
            )
        now_ns = self.stores.clock()
        feed_store(self.stores).change_feed(
            feed.feed_id,
            lambda each: replace(
                feed_states.resume(each, now_ns), chosen=tuple(chosen), deletions=deletions
            ),
        )

    def sign_in_command(self, feed: FeedRow) -> str | None:
        """See the port."""
        return sign_in_command(self.stores, feed)

    def give_password(self, feed: FeedRow, password: str) -> None:
        """Keep a new one.  Raises: InvalidRequest, InvalidState."""
        if not password:
            raise InvalidRequest("Something is missing.", param="password")
        require_password(self.stores, feed)
        new_password(self.stores, feed, password)

    def fill(self, feed: FeedRow, account: str) -> None:
        """Let a feed go on into an account.  Raises: InvalidRequest, InvalidState."""
        if not account or len(account) > MOST_CHARACTERS:
            raise InvalidRequest("Choose an account first.", param="account")
        now_ns = self.stores.clock()
        feed_store(self.stores).change_feed(
            feed.feed_id, lambda each: replace(feed_states.resume(each, now_ns), account=account)
        )

    def items(self, feed: FeedRow) -> int:
        """Mails, or lines of the ledger."""
        if feed.kind in MAIL_KINDS:
            mails = SqlFeedMails(self.stores.database, self.stores.configuration.subject_id)
            return sum(mails.mail_counts(feed.feed_id).values())
        lines = feed_store(self.stores).feed_items(feed.feed_id)
        if feed.kind in DAV_KINDS:
            return sum(1 for _ in KnownAccount.of(lines).alive())
        return len(lines)

    def remove(self, feed: FeedRow) -> None:
        """Forget it.  Raises: NotFound."""
        forget_feed(self.stores, feed)

    def _require_new(self, new: Sequence[NewFeed]) -> None:
        """Raises: InvalidState, before the password of an account that is fed is tried again."""
        fed = {each.place for each in feed_store(self.stores).feeds()}
        if any(each.place in fed for each in new):
            raise InvalidState("This account is kept up to date already.")

    def _kept(self, new: Sequence[NewFeed], password: str) -> list[FeedRow]:
        """All of them, or none.  Raises: InvalidState."""
        kept: list[FeedRow] = []
        try:
            for each in new:
                kept.append(each.added(self.stores, password))  # noqa: PERF401 (kept if one fails)
        except PersonalServerError:
            for row in kept:
                forget_feed(self.stores, row)
            raise
        return kept

    def _looked(self, look: Callable[[], list[SeenFolder]]) -> list[SeenFolder]:
        if not _looks.acquire(blocking=False):
            raise InvalidState("Another sign-in is under way. Try again in half a minute.")
        try:
            return look()
        except FetchTrouble as trouble:
            raise _refusal(trouble.code) from None
        finally:
            _looks.release()


def _look_at(feed: FeedRow, secrets: FeedSecrets) -> Callable[[], list[SeenFolder]]:
    """What lists the folders of a mailbox.  Raises: FetchTrouble."""
    if feed.kind != JMAP:
        place = MailPlace.of(feed.place)
        return partial(folders_at, place, place.sign_in_of(feed, secrets))
    password = secrets.password(feed)
    if password is None:
        raise FetchTrouble("sign_in_missing")
    return _look_over_jmap(WebPlace.of(feed.kind, feed.place), password)


def _look_over_jmap(place: WebPlace, password: str) -> Callable[[], list[SeenFolder]]:
    from personal_server.app.jmap_sign_ups import mailboxes_at  # noqa: PLC0415 (few do)

    return partial(mailboxes_at, place, password)


def _refusal(code: str) -> InvalidState:
    return InvalidState(what_to_do(code), feed_code=code)
