"""The ledger of a feed: which items are imported now, and what became of the others.

Rule: pure.  An item that nobody imported is never told as imported, and nothing that is gone costs
a record.
Source: docs/contract/feeds.md 5 and 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

import msgspec

from pdpp_kernel.values import NANOSECONDS
from personal_server.feeds.watched_folders import FolderLayout, SeenItem
from personal_server.storage.feed_rows import FeedItemRow

SETTLED_AFTER_NS = 5 * NANOSECONDS
# Longer than the clock of a drive is wrong, also one that tells local time as if it were UTC.
LONG_PAST_NS = 24 * 3_600 * NANOSECONDS
LONGEST_CHANGING_NS = 60 * NANOSECONDS
NEW, CHANGED = "new", "changed"
UNFINISHED = "unfinished"
"""The code of an item of which parts could not be read; the others are stored."""


class ItemState(StrEnum):
    """What the ledger says of an item."""

    SETTLING = "settling"
    STORED = "stored"
    REJECTED = "rejected"
    GONE = "gone"


class LookTerms(msgspec.Struct, frozen=True):
    """By what a look is judged.

    Shapes: `retries` has rejected items tried again; `reader` is the version that would read.
    Units: `now_ns` by the server's clock.
    """

    feed_id: str
    layout: FolderLayout
    now_ns: int
    reader: str
    retries: bool = False


class Decision(msgspec.Struct):
    """What a run does with the items that it saw.

    Shapes: `taken` are imported; `lines` are written to the ledger as they are, and `forgotten` are
        items that have another name now; `new` and `changed` count what is taken or settles.
    """

    taken: list[SeenItem] = msgspec.field(default_factory=list[SeenItem])
    lines: list[FeedItemRow] = msgspec.field(default_factory=list[FeedItemRow])
    forgotten: list[str] = msgspec.field(default_factory=list[str])
    new: int = 0
    changed: int = 0
    gone: int = 0
    settling: int = 0


def decide(
    seen: Sequence[SeenItem], known: Mapping[str, FeedItemRow], terms: LookTerms
) -> Decision:
    """Compare what lies there with the ledger.

    In: `a.zip` as it was stored, `b.zip` that grows, nothing of `c.zip`.  Out: `b.zip` settles,
    `c.zip` is gone, nothing is taken.
    """
    decision = Decision()
    names = {each.name for each in seen}
    missing = {
        line.mark: line
        for name, line in known.items()
        if name not in names and line.state != ItemState.SETTLING
    }
    renamed: set[str] = set()
    for item in seen:
        line = known.get(item.name)
        before = missing.get(item.mark) if line is None or line.mark != item.mark else None
        if before is not None and before.item not in renamed:
            renamed.add(before.item)
            decision.forgotten.append(before.item)
            decision.lines.append(replace(_back(before), item=item.name))
        else:
            _judge(item, line, terms, decision)
    for name, line in known.items():
        if name in names or name in renamed or line.state == ItemState.GONE:
            continue
        if line.state == ItemState.SETTLING and line.code == NEW:
            decision.forgotten.append(name)  # it never was more than unfinished
        else:
            decision.gone += 1
            code = None if line.state == ItemState.SETTLING else line.code
            decision.lines.append(replace(line, state=ItemState.GONE, code=code))
    return decision


def _judge(item: SeenItem, line: FeedItemRow | None, terms: LookTerms, decision: Decision) -> None:
    """One item that has the name it had."""
    if line is not None and line.mark == item.mark and line.state != ItemState.SETTLING:
        is_again = line.code is not None and (terms.retries or line.reader != terms.reader)
        if not is_again:
            if line.state == ItemState.GONE:
                decision.lines.append(_back(line))
            return
    kind = _kind(line)
    decision.new += kind == NEW
    decision.changed += kind == CHANGED
    if _is_settled(item, line, terms):
        decision.taken.append(item)
    else:
        decision.settling += 1
        is_same = line is not None and line.state == ItemState.SETTLING and line.mark == item.mark
        if line is None or not is_same or line.at_ns > terms.now_ns:  # the clock was put back
            decision.lines.append(_settling(item, line, kind, terms))


def _kind(line: FeedItemRow | None) -> str:
    if line is None:
        return NEW
    return line.code or NEW if line.state == ItemState.SETTLING else CHANGED


def _is_settled(item: SeenItem, line: FeedItemRow | None, terms: LookTerms) -> bool:
    """Whether an item rests, or is of a kind that may be read while it changes."""
    if item.is_unfinished:
        return False
    if terms.layout is FolderLayout.PROFILE:
        return True
    is_same = line is not None and line.mark == item.mark
    if line is not None and is_same and line.state != ItemState.SETTLING:
        return True
    if item.newest_ns + LONG_PAST_NS <= terms.now_ns:
        return True
    if line is None or line.state != ItemState.SETTLING:
        return False
    if is_same and line.at_ns + SETTLED_AFTER_NS <= terms.now_ns:
        return True
    may_change = terms.layout is not FolderLayout.EXPORTS
    return may_change and line.since_ns + LONGEST_CHANGING_NS <= terms.now_ns


def _settling(item: SeenItem, line: FeedItemRow | None, kind: str, terms: LookTerms) -> FeedItemRow:
    still = line is not None and line.state == ItemState.SETTLING
    return FeedItemRow(
        feed_id=terms.feed_id,
        item=item.name,
        mark=item.mark,
        state=ItemState.SETTLING,
        code=kind,
        reader=terms.reader,
        at_ns=terms.now_ns,
        since_ns=min(line.since_ns, terms.now_ns) if line is not None and still else terms.now_ns,
        record_keys=line.record_keys if line is not None else (),
    )


def _back(line: FeedItemRow) -> FeedItemRow:
    """A line of an item that is there again, or under another name."""
    if line.state != ItemState.GONE:
        return line
    is_whole = line.code is None or line.code == UNFINISHED
    return replace(line, state=ItemState.STORED if is_whole else ItemState.REJECTED)


def line_after(item: SeenItem, code: str | None, terms: LookTerms) -> FeedItemRow:
    """What the ledger says of an item that was imported: with a code, of what was refused."""
    is_stored = code is None or code == UNFINISHED
    return FeedItemRow(
        feed_id=terms.feed_id,
        item=item.name,
        mark=item.mark,
        state=ItemState.STORED if is_stored else ItemState.REJECTED,
        code=code,
        reader=terms.reader,
        at_ns=terms.now_ns,
        since_ns=terms.now_ns,
    )


class Difference(msgspec.Struct, frozen=True):
    """One item that is not as the ledger says: `new`, `changed`, `gone` … with its code."""

    item: str
    reason: str
    code: str | None = None


def differences(seen: Iterable[SeenItem], known: Mapping[str, FeedItemRow]) -> list[Difference]:
    """What of a place is not imported, and what of the ledger is not there."""
    found: list[Difference] = []
    names: set[str] = set()
    for item in seen:
        names.add(item.name)
        line = known.get(item.name)
        if line is None or line.mark != item.mark:
            found.append(Difference(item.name, NEW if line is None else _kind(line)))
        elif line.state == ItemState.SETTLING or line.code is not None:
            found.append(Difference(item.name, line.state, line.code))
    gone = (name for name in known if name not in names)
    return found + [Difference(name, ItemState.GONE) for name in gone]
