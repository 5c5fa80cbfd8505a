"""What a look at a JMAP account asks its server, and what it keeps of the answers.

Source: docs/contract/feeds.md 13; RFC 8621, 2 (mailboxes).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.jmap.jmap_messages import (
    MISBEHAVES,
    AskMailboxes,
    AskStates,
    JmapMessage,
    JmapRequest,
    JmapSession,
    MailboxSeen,
    StatesSeen,
)
from pdpp_sources.jmap.jmap_process import JmapProcess
from pdpp_sources.mailbox_messages import MOST_FOLDERS
from personal_server.app.jmap_mailboxes import (
    BEGUN,
    LARGEST_NUMBER,
    SESSION,
    STATES,
    KnownJmap,
    KnownMailbox,
    States,
    Todo,
    fetched_of,
    paths_of,
)
from personal_server.app.mail_ledger import MailLedger, SyncPorts
from personal_server.feeds.feed_runs import RunResult
from personal_server.storage.feed_rows import FeedRow

RUN_SECONDS = 1_800.0
_Reply = TypeVar("_Reply", bound=JmapMessage)


class LookAgain(Exception):
    """The look has lasted long enough, or what it knew is of no use; the next one goes on."""


@dataclass(slots=True)
class JmapLook:
    """One look at the account of a feed, over a process that reads what its server says.

    Shapes: `is_asked` says that the owner asked for it: then all is compared; `turn` is its number.
    """

    feed: FeedRow
    process: JmapProcess
    ports: SyncPorts
    result: RunResult
    is_asked: bool
    turn: int
    known: KnownJmap = field(init=False)
    ledger: MailLedger = field(init=False)
    _began: float = field(default_factory=time.monotonic, init=False)

    def __post_init__(self) -> None:
        self.known = KnownJmap.of(self.ports.store.feed_items(self.feed.feed_id))
        self.ledger = MailLedger(self.feed, self.ports, self.result, self.turn, LARGEST_NUMBER)
        self.ledger.is_noted = self.known.owes
        self.ledger.names = self.known.names

    def ask(self, request: JmapRequest, form: type[_Reply]) -> list[_Reply]:
        """What is answered; a session that is new is kept."""
        answers: list[_Reply] = []
        for each in self.process.ask(request):
            if isinstance(each, JmapSession):
                self.known.session = each
                self.ledger.keep_line(SESSION, msgspec.json.encode(each).decode())
            elif isinstance(each, form):
                answers.append(each)
        return answers

    def states_now(self) -> States:
        """The states of now."""
        found = self.ask(AskStates(), StatesSeen)[-1]
        return States(found.emails, found.mailboxes)

    def keep_states(self, states: States) -> None:
        """Keep how far changes were followed."""
        if states != self.known.states:
            self.known.states = states
            self.ledger.keep_line(STATES, msgspec.json.encode(states).decode())

    def keep_begun(self, ids: Sequence[str]) -> None:
        """Keep mails that are taken before the states that tell of them are."""
        now = list(dict.fromkeys(ids))
        if now == self.known.begun:
            return
        self.known.begun = now
        if now:
            self.ledger.keep_line(BEGUN, msgspec.json.encode(now).decode())
        else:
            self.ledger.keep_lines({}, [BEGUN])

    def take_mailboxes(self) -> None:
        """Take all mailboxes as they are now; what was in those that are gone is gone."""
        listed = self.ask(AskMailboxes(None), MailboxSeen)
        if not any(each.role == "inbox" for each in listed):  # an account without one is none
            raise AccountTrouble(MISBEHAVES)
        paths = paths_of(listed)
        fetched = fetched_of(listed, paths, self.feed.chosen)
        before = self.known.mailboxes
        is_cut = len(listed) >= MOST_FOLDERS  # there may be more: what is not listed stays as it is
        now = dict(before) if is_cut else dict[str, KnownMailbox]()
        for each in listed:
            known = before.get(each.mailbox, KnownMailbox("", is_fetched=False))
            is_fetched = each.mailbox in fetched
            one = msgspec.structs.replace(
                known, path=paths[each.mailbox], is_fetched=is_fetched, mails=each.mails
            )
            if is_fetched and not known.is_fetched:
                one = msgspec.structs.replace(one, todo=Todo.FILL, behind=None)
            now[each.mailbox] = one
        kept = {name for name, each in now.items() if each.is_fetched}
        lost = [name for name, each in before.items() if each.is_fetched and name not in kept]
        for mailbox in lost:
            self.ledger.set_aside(mailbox, 0)
        self.known.mailboxes = now
        self.ledger.names = self.known.names
        for mailbox, each in before.items():
            if mailbox in fetched and each.is_fetched and each.path != now[mailbox].path:
                self.ledger.touch_folder(mailbox)
        changed = {name: each.text for name, each in now.items() if before.get(name) != each}
        self.ledger.keep_lines(changed, before.keys() - now.keys())

    def keep_mailbox(self, mailbox: str, now: KnownMailbox) -> None:
        """Keep what is known of a mailbox."""
        if self.known.mailboxes.get(mailbox) != now:
            self.known.mailboxes[mailbox] = now
            self.ledger.keep_line(mailbox, now.text)

    def have_compared(self, mailbox: str) -> None:
        """Have a mailbox compared whole."""
        now = self.known.mailboxes[mailbox]
        self.keep_mailbox(mailbox, msgspec.structs.replace(now, todo=Todo.COMPARE, behind=None))

    @property
    def is_over(self) -> bool:
        """Whether it has lasted long enough."""
        return time.monotonic() - self._began > RUN_SECONDS

    def require_time(self) -> None:
        """Raises: LookAgain where another look is to go on."""
        if self.is_over:
            raise LookAgain
