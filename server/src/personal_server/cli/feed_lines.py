"""A feed as commands read it when it is typed, and as they print it.

Source: docs/contract/feeds.md 7 and 8.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Annotated

import msgspec
from cyclopts import Parameter

from pdpp_kernel.values import instant_text
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import words
from personal_server.app.account_sign_ups import NewFeed
from personal_server.app.feed_secrets import FILE, PasswordPlace
from personal_server.app.feeding import feed_store
from personal_server.app.stores import Stores
from personal_server.feeds.feed_schedule import (
    LEAST_EVERY_SECONDS,
    MOST_EVERY_SECONDS,
    USUAL_EVERY_SECONDS,
)
from personal_server.feeds.feed_trouble import trouble_of
from personal_server.storage.feed_rows import FOLLOW, KEEP, FeedRow, FeedRunRow

Flag = Annotated[bool, Parameter(negative="")]
_EVERY = re.compile(r"(\d{1,6})([smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def seconds_of(every: str | None, usual: int = USUAL_EVERY_SECONDS) -> int:
    """The time between two runs that was typed, else the usual.  Raises: CommandError."""
    if every is None:
        return usual
    match = _EVERY.fullmatch(every)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if not LEAST_EVERY_SECONDS <= seconds <= MOST_EVERY_SECONDS:
        raise CommandError("usage", "A feed runs every 30s to 7d.", "For example: --every 5m")
    return seconds


def feed_named(stores: Stores, name: str) -> FeedRow:
    """The feed of a name or id.  Raises: CommandError."""
    for row in feed_store(stores).feeds():
        if name in (row.feed_id, row.name):
            return row
    raise CommandError("not_found", "No feed has this name.", "`pdpp feed list` shows all feeds.")


def spelled(name: str) -> str:
    """A name as it is typed."""
    return f"'{name}'" if " " in name else name


def folders_of(mailbox: NewFeed | FeedRow) -> str:
    """Which folders of a mailbox are fetched, in words."""
    return ", ".join(mailbox.chosen) or "all but junk and trash"


def deleted_there(feed: NewFeed | FeedRow) -> str:
    """What becomes of records of what is deleted in its account, in words."""
    return "deleted here too" if feed.deletions == FOLLOW else "kept here"


def password_place(kept: PasswordPlace | None) -> str:
    """Where the password of a feed lies, in words."""
    match kept:
        case PasswordPlace.KEYRING:
            return "in the keyring of this machine"
        case PasswordPlace.FILE:
            return f"sealed in {FILE} of the data directory"
        case None:
            return "none: give it with pdpp feed password"


def feed_json(row: FeedRow, last: Sequence[FeedRunRow] = ()) -> dict[str, object]:
    """A feed as `--json` prints it."""
    succeeded = row.succeeded_at_ns
    return {
        "feed_id": row.feed_id,
        "name": row.name,
        "kind": row.kind,
        "place": row.place,
        "layout": row.layout,
        "every_seconds": row.every_seconds,
        "deletions": row.deletions,
        "folders": list(row.chosen),
        "state": row.state,
        "code": row.code,
        "failures": row.failures,
        "failing_since": row.failing_since_ns and instant_text(row.failing_since_ns),
        "silent_since": row.silent_since_ns and instant_text(row.silent_since_ns),
        "stale": trouble_of(row),
        "last_success": None if succeeded is None else instant_text(succeeded),
        "sign_in_ends": row.sign_in_ends_ns and instant_text(row.sign_in_ends_ns),
        "newest_data": row.brought_at_ns and instant_text(row.brought_at_ns),
        "next_run": instant_text(row.due_at_ns),
        "connection_ids": list(row.connection_ids),
        "last_run": _run_json(last[0]) if last else None,
    }


def _run_json(run: FeedRunRow) -> dict[str, object]:
    members: dict[str, object] = {
        name: value for name, value in msgspec.to_builtins(run).items() if not name.endswith("_ns")
    }
    moments = {"began_at": run.began_at_ns, "ended_at": run.ended_at_ns}
    return members | {name: instant_text(at_ns) for name, at_ns in moments.items()}


def deletions_of(given: str | None) -> str:
    """What becomes of records of what is deleted in the place.  Raises: CommandError."""
    if given is None and sys.stdin.isatty():
        words().print("What you delete there: should it be deleted here too? [y/N]")
        given = FOLLOW if input().strip().lower() in ("y", "yes") else KEEP
    if given not in (None, KEEP, FOLLOW):
        raise CommandError(
            "usage",
            "Deleted records are either kept here, or deleted here too.",
            "--deletions keep|follow",
        )
    return given or KEEP
