"""One look at a mailbox: what of it came, changed, moved or went since the look before.

Rule: a body is fetched once, also where the connection is cut within it, and never for a copy of a
mail that is here; what a server says went is compared with what is there; nothing that was not
looked at counts as gone.
Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pdpp_kernel.uid_ranges import LARGEST_UID, UidSet, packed_ranges
from pdpp_sources.mailbox_messages import (
    LARGEST_MAIL_BYTES,
    MOST_FOLDERS,
    AskChanges,
    AskHeads,
    AskLabels,
    AskMark,
    FetchMails,
    FolderMark,
    FolderSeen,
    LeaveMailbox,
    ListUids,
    MailHead,
    MailLabels,
    MailPart,
    MailRefused,
    MailSeen,
    OpenFolder,
    SignIn,
    UidRanges,
)
from pdpp_sources.mailbox_process import MailboxProcess
from personal_server.app.mail_batches import MailBatch
from personal_server.app.mail_ledger import ROWS_AT_ONCE, UNTOLD, MailLedger, SyncPorts
from personal_server.app.mailbox_folders import WholeLooks, in_turn, looks_of_a_round
from personal_server.app.mailbox_marks import mark_of, merged_mark, text_of, unknown_ranges
from personal_server.app.mailbox_talk import ask, folders_of, groups, sign_in_to
from personal_server.feeds.feed_runs import RunResult
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.storage.feed_rows import UNSURE, FeedMailRow, FeedRow

HEADS_AT_ONCE = 500
RUN_SECONDS = 1_800.0
UNREADABLE = "unreadable_mail"
RECENT_MAILS = 500
"""Whose labels are compared where a server does not tell what changed."""
LOOKS = "\nlooks"
"""The line of the ledger that says which looks missed nothing, of a server that takes several."""


class _TimeIsOver(Exception):
    """The look has lasted long enough; the next one goes on."""


@dataclass(slots=True)
class MailboxSync:
    """A look at the mailbox of a feed, over a process that speaks IMAP.

    Shapes: `is_asked` says that the owner asked for it: then all is compared.
    """

    feed: FeedRow
    process: MailboxProcess
    ports: SyncPorts
    result: RunResult
    is_asked: bool
    turn: int = 0
    _known: dict[str, FolderMark] = field(default_factory=dict[str, FolderMark], init=False)
    _looks: str = field(default="", init=False)
    _missed: bool = field(default=False, init=False)
    _ledger: MailLedger = field(init=False)
    _began: float = field(default_factory=time.monotonic, init=False)

    def __post_init__(self) -> None:
        self._ledger = MailLedger(self.feed, self.ports, self.result, self.turn)

    def run(self, sign_in: SignIn) -> None:
        """Look, fetch, import, follow.  Raises: FetchTrouble, PutOff; what is stored is kept."""
        lines = {e.item: e.mark for e in self.ports.store.feed_items(self.feed.feed_id)}
        owes = self._ledger.is_noted = lines.pop(UNTOLD, None) is not None
        self._looks = lines.pop(LOOKS, "")
        self._known = {name: mark_of(mark) for name, mark in lines.items()}
        can = sign_in_to(self.process, sign_in)
        listed, fetched = folders_of(self.process, self.feed.chosen, can)
        has_marks = all(each.mark is not None for each in fetched)
        looked = fetched if has_marks else in_turn(fetched, self.turn)
        try:
            for number, each in enumerate(looked):
                if number and self._is_over:  # a server may take minutes for each folder
                    raise _TimeIsOver
                self._look(each)
            if len(listed) < MOST_FOLDERS:
                self._lose_folders({each.name for each in fetched})
            if owes:  # the run before was ended before records told what the ledger knew
                self._ledger.touch_all()
                owes = False
            if not self._missed:
                self._settle(1 if has_marks else looks_of_a_round(len(fetched)), fetched)
        except _TimeIsOver:
            self.result.settling += 1
        finally:
            self._ledger.tell()
            if not owes:
                self._ledger.forget_note()
        for _ in ask(self.process, LeaveMailbox()):
            pass

    # One folder ------------------------------------------------------------------------------
    def _look(self, folder: FolderSeen) -> None:
        name, mark = folder.name, folder.mark
        if mark is None:
            asked = [e for e in ask(self.process, AskMark(name)) if isinstance(e, FolderSeen)]
            mark = asked[0].mark if asked else None
        known = self._known.get(name)
        if mark is not None:
            self.result.seen += mark.mails
        if mark is not None and mark == known and not self.is_asked:
            return
        opened = [e.mark for e in ask(self.process, OpenFolder(name)) if isinstance(e, FolderSeen)]
        if mark is None or not opened or opened[0] is None:
            self._missed = True
            return
        now = merged_mark(opened[0], mark)
        if known is not None and known.uidvalidity != now.uidvalidity:
            self._ledger.set_aside(name, known.uidvalidity)
            known = None
        taken = known.uid_next - 1 if known is not None else 0
        if not now.uid_next:
            now = self._numbered(now, taken)
            if now == known and not self.is_asked:
                return
        if known is None:  # who is killed leaves no mail of a folder that the ledger does not name
            self._keep_mark(name, FolderMark(now.uidvalidity, 1))
        if known is not None and taken:
            self._changes(name, known, now, taken)
        self._new(name, now, taken)
        self._compare(name, now)
        self._keep_mark(name, now)

    def _numbered(self, now: FolderMark, taken: int) -> FolderMark:
        """The mark of a folder of a server that tells no next number: that behind the last."""
        last = max((last for _, last in self._uids(taken + 1).ranges()), default=taken)
        return FolderMark(now.uidvalidity, last + 1, now.mails, now.modseq, now.unseen)

    def _changes(self, name: str, known: FolderMark, now: FolderMark, taken: int) -> None:
        """What became of mails that are known."""
        if known.modseq and now.modseq >= known.modseq:
            if now.modseq == known.modseq:
                return
            answers = ask(self.process, AskChanges(known.modseq))
        elif self.is_asked or now.modseq:
            answers = ask(self.process, AskLabels(1, taken))
        else:
            answers = ask(self.process, AskLabels(max(1, taken - RECENT_MAILS + 1), taken))
        labels: dict[int, tuple[str, ...]] = {}
        for each in answers:
            if isinstance(each, UidRanges):
                self._lose(name, UidSet(each.packed))
            elif isinstance(each, MailLabels) and each.uid <= taken:
                labels[each.uid] = tuple(each.labels)
            if len(labels) >= ROWS_AT_ONCE:
                self._relabel(name, labels)
                labels = {}
        self._relabel(name, labels)

    def _relabel(self, name: str, labels: dict[int, tuple[str, ...]]) -> None:
        rows = self.ports.mails.mails_at(self.feed.feed_id, name, list(labels))
        changed = [e for e in rows if e.labels != labels[e.uid]]
        self._ledger.keep([replace(e, labels=labels[e.uid]) for e in changed])

    def _lose(self, name: str, gone: UidSet) -> None:
        """Note what a server says went."""
        for first, last in gone.ranges():
            for rows in self._ledger.pages(name, first - 1, last):
                self._ledger.mark_gone([row for row in rows if row.gone_at is None])

    def _new(self, name: str, now: FolderMark, taken: int) -> None:
        first, below = taken + 1, now.uid_next or LARGEST_UID
        if first >= below or not now.mails:
            return
        if below - first <= HEADS_AT_ONCE:
            stretches: Iterable[tuple[int, int]] = [(first, below - 1)]
        else:
            stretches = self._uids(first).stretches(HEADS_AT_ONCE, below)
        self._take(MailBatch(name, self.ports.staged, now.uidvalidity), stretches, now)

    def _uids(self, first: int) -> UidSet:
        packed = [e.packed for e in ask(self.process, ListUids(first)) if isinstance(e, UidRanges)]
        return UidSet(packed[0] if packed else b"")

    def _take(
        self, batch: MailBatch, stretches: Iterable[tuple[int, int]], mark: FolderMark | None
    ) -> None:
        """Fetch mails; `mark` is given where they come in order, so that a look can go on there."""
        batch.clear()
        taken: int | None = None
        for first, last in stretches:
            try:
                heads = self._heads(first, last)
            except FetchTrouble:
                self._import(batch, mark, taken)  # a server that ends often is fetched whole, too
                raise
            wanted = self._without_copies(batch, heads)
            for group in groups(wanted):
                self._fetch(batch, group, mark)
            taken = last
            if batch.is_full or self._is_over:
                self._import(batch, mark, last)
        self._import(batch, mark, None)

    def _heads(self, first: int, last: int) -> list[MailHead]:
        answers = ask(self.process, AskHeads(first, last))
        heads = {each.uid: each for each in answers if isinstance(each, MailHead)}
        return [heads[uid] for uid in sorted(heads)]

    @property
    def _is_over(self) -> bool:
        return time.monotonic() - self._began > RUN_SECONDS

    def _without_copies(self, batch: MailBatch, heads: Sequence[MailHead]) -> list[MailHead]:
        """Those whose body is to be fetched; of the others the ledger knows the record."""
        copies = [head.copy for head in heads]
        found = self.ports.mails.copies(self.feed.feed_id, copies)
        known = {each.copy_of: each for each in found if each.code != UNSURE}
        rows: list[FeedMailRow] = []
        wanted: list[MailHead] = []
        for head in heads:
            row = _row(self.feed, batch.folder, head)
            if head.copy and head.copy in known:
                rows.append(replace(row, record_key=known[head.copy].record_key))
            elif head.size_bytes > LARGEST_MAIL_BYTES:
                self._refuse(batch, replace(row, code="too_large"))
            else:
                wanted.append(head)
        self.result.new += len(rows)
        self._ledger.keep(rows)
        return wanted

    def _refuse(self, batch: MailBatch, row: FeedMailRow) -> None:
        self.result.rejected += 1
        batch.rows.append(row)

    def _fetch(self, batch: MailBatch, heads: Sequence[MailHead], mark: FolderMark | None) -> None:
        """Fetch a few mails whole; what came of one before a cut is kept for the next look."""
        by_uid = {head.uid: head for head in heads}
        uids, begun = self.ports.parts.begun(batch.folder, mark, list(by_uid))
        content, at = bytearray(begun), uids[0]
        try:
            for each in ask(self.process, FetchMails(uids, begun)):
                if isinstance(each, MailPart):
                    if each.uid != at:
                        content, at = bytearray(), each.uid
                    content += each.content
                elif isinstance(each, MailSeen) and each.uid in by_uid:
                    if not content and by_uid[each.uid].size_bytes:
                        continue  # it gives nothing
                    head = by_uid.pop(each.uid)
                    batch.add(head.uid, bytes(content), head.labels)
                    self.result.new += 1
                    row = _row(self.feed, batch.folder, head)
                    batch.rows.append(replace(row, record_key=each.key))
                    content = bytearray()
                elif isinstance(each, MailRefused) and each.uid in by_uid:
                    head = by_uid.pop(each.uid)
                    self._refuse(
                        batch, replace(_row(self.feed, batch.folder, head), code=each.code)
                    )
                    content = bytearray()
        except FetchTrouble:
            last = min(by_uid, default=uids[-1] + 1) - 1
            self._import(batch, mark, last)
            self.ports.parts.keep(batch.folder, mark, at, bytes(content))
            raise
        for head in by_uid.values():
            self._refuse(batch, replace(_row(self.feed, batch.folder, head), code=UNREADABLE))

    def _import(self, batch: MailBatch, mark: FolderMark | None, last: int | None) -> None:
        """Import what was fetched, and note that all up to `last` is here.

        Raises: FetchTrouble; PutOff; _TimeIsOver where another look is to go on.
        """
        self._ledger.take(batch)
        if batch.rows:
            self._ledger.touch(row for row in batch.rows if not row.copy_of)
        batch.clear()
        if mark is not None and last is not None:
            self._keep_mark(batch.folder, FolderMark(mark.uidvalidity, last + 1))
        if self._is_over:
            raise _TimeIsOver

    def _compare(self, name: str, now: FolderMark) -> None:
        """Compare the ledger with all that is there, where their numbers differ."""
        in_ledger = self.ports.mails.mail_count(self.feed.feed_id, name)
        if in_ledger == now.mails and not self.is_asked:
            return
        there = self._uids(1) if now.mails else UidSet(b"")
        if now.mails and not len(there):
            self._missed = True
            return
        known = array("I")
        for rows in self._ledger.pages(name, 0, LARGEST_UID):
            known.extend(row.uid for row in rows)
            gone = [row for row in rows if row.gone_at is None and row.uid not in there]
            back = [row for row in rows if row.gone_at is not None and row.uid in there]
            self._ledger.mark_gone(gone)
            self._ledger.keep([replace(row, gone_at=None) for row in back])
        missing = UidSet(packed_ranges(unknown_ranges(there, known, now.uid_next)))
        batch = MailBatch(name, self.ports.staged, now.uidvalidity)
        self._take(batch, missing.stretches(HEADS_AT_ONCE, LARGEST_UID), None)

    def _settle(self, looks: int, fetched: Sequence[FolderSeen]) -> None:
        """Forget what is gone, once so many looks in a row, which are over all folders, missed it.

        Raises: FetchTrouble.
        """
        if looks > 1:
            whole = WholeLooks.with_one(self._looks, self.turn, fetched)
            self._ledger.keep_line(LOOKS, whole.text)
            if not whole.were(looks):
                return
        self._ledger.settle(self.turn - looks + 1, is_asked=self.is_asked)

    def _keep_mark(self, name: str, mark: FolderMark) -> None:
        if self._known.get(name) == mark:
            return
        self._known[name] = mark
        self._ledger.keep_line(name, text_of(mark))

    # What is gone ----------------------------------------------------------------------------
    def _lose_folders(self, there: set[str]) -> None:
        """Note what lay in folders that are not there any more, or are not fetched any more."""
        known = dict(self._known)
        if self.is_asked:  # earlier versions left mails of folders that no line names
            of_mails = self.ports.mails.mail_counts(self.feed.feed_id)
            known |= {name: FolderMark() for name in of_mails if name not in known}
        for name in known.keys() - there:
            self._ledger.set_aside(name, known[name].uidvalidity)
            self._known.pop(name, None)
            self.ports.store.keep_feed_items(self.feed.feed_id, (), [name])


def _row(feed: FeedRow, folder: str, head: MailHead) -> FeedMailRow:
    return FeedMailRow(
        feed_id=feed.feed_id,
        folder=folder,
        uid=head.uid,
        copy_of=head.copy,
        record_key="",
        labels=tuple(head.labels),
    )
