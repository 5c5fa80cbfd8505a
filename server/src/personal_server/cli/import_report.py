"""What became of an import: a line a stream, what was passed over and why, and the same as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from pdpp_kernel.source_item import Data, Skipped, TextState
from pdpp_mcp_server.commands.failures_shown import Failure
from pdpp_mcp_server.commands.tables import indented, plain, table
from personal_server.cli.unread_files import UnreadFiles, print_beyond
from personal_server.collecting.imports import DAMAGE, NOTED, ImportTally

UNFINISHED = 65  # the exit code of an import that met damage: what could be read is stored
UNREADABLE = frozenset({"unreadable", "costly"})
SHOWN_EXAMPLES = 5  # of the skips of one kind, and of the files that a source reads


class ImportReport(msgspec.Struct):
    """What became of all paths."""

    reports: list[Data] = msgspec.field(default_factory=list[Data])
    unread: list[UnreadFiles] = msgspec.field(default_factory=list[UnreadFiles])
    failures: list[tuple[Path, Failure]] = msgspec.field(default_factory=list[tuple[Path, Failure]])
    not_revived: list[Data] = msgspec.field(default_factory=list[Data])

    @property
    def exit_code(self) -> int:
        """The first failure's own; else whether something was damaged."""
        if self.failures:
            return self.failures[0][1].exit_code
        damaged = any(report["unfinished"] for report in self.reports) or self._brought_nothing
        return (
            UNFINISHED
            if damaged or any(UNREADABLE & each.files.keys() for each in self.unread)
            else 0
        )

    @property
    def _brought_nothing(self) -> bool:
        """Whether there was something to import, and not one record in it."""
        streams = [each for report in self.reports for each in report["streams"].values()]
        are_files = all("files" in report for report in self.reports)
        return bool(self.reports) and are_files and not any(e["read"] for e in streams)

    def as_json(self) -> Data:
        """For programs; a lone failure looks like that of any command."""
        errors = [_failure_json(path, failure) for path, failure in self.failures]
        if len(errors) == 1 and not self.reports:
            return {"error": {k: v for k, v in errors[0].items() if k != "path"}}
        not_read = [each.as_json() for each in self.unread]
        reports: Data = {"imports": self.reports, "not_read": not_read}
        if self.not_revived:
            reports["grants_not_revived"] = self.not_revived
        return reports | ({"errors": errors} if errors else {})


def _failure_json(path: Path, failure: Failure) -> Data:
    facts = {"path": str(path), "code": failure.code, "message": failure.message}
    more = {
        "next_step": failure.next_step,
        "connector_key": failure.connector_key,
        "errors": list(failure.errors),
    }
    return facts | {name: value for name, value in more.items() if value}


def print_tally(
    tally: ImportTally,
    refused: Sequence[Skipped],
    target: Data | None,
    out: Console,
    *,
    stored: bool,
) -> None:
    """One line per stream, then what was passed over and why."""
    if target is not None:
        label = target["name"] or target["connection_id"]
        out.print(Text.assemble("  into ", (plain(label).plain, "bold")))
    rows = [
        (f"  {name}", each.read, each.new, each.updated, each.unchanged, each.rejected)
        for name, each in tally.streams.items()
    ]
    if stored:
        out.print(table(("  stream", "read", "new", "updated", "unchanged", "rejected"), rows))
    else:
        from personal_server.cli.survey_report import print_survey  # noqa: PLC0415 (of dry runs)

        print_survey(tally, out)
    _print_absent(tally, out)
    if tally.earliest:
        out.print(f"  from {tally.earliest} to {tally.latest}")
    for name, each in tally.streams.items():
        if each.moved:
            out.print(plain(f"  {name} moved to another thread: {each.moved}"))
        if each.texts:
            out.print(plain(f"  text of files in {name}: {_texts_shown(each.texts)}"))
    if not any(e.read or e.texts for e in tally.streams.values()) and not tally.skipped_count:
        out.print("  No records of this source found.")
    for code, count, examples in _skipped(tally, refused):
        out.print(plain(f"  {'noted' if code in NOTED else 'skipped'} {count} × {code}"))
        shown = examples[:SHOWN_EXAMPLES]
        for each in shown:
            indented(f"{each.where}: {each.reason}", 4, out)
        print_beyond(count - len(shown), out)


def _print_absent(tally: ImportTally, out: Console) -> None:
    """What is stored and not in the file."""
    for name, each in tally.streams.items():
        if each.deleted:
            out.print(plain(f"  deleted {each.deleted:,} of {name} that are not in this file"))
        if each.absent > each.deleted:
            kept = f"  {each.absent - each.deleted:,} of {name} are not in this file"
            out.print(
                plain(f"{kept}; these records are kept (use --replace if this file is complete)")
            )


TEXTS_SAID = {
    TextState.READ: "read",
    TextState.CUT: "read in part, being very long",
    TextState.PICTURES_UNREAD: "read but for pictures, which need Tesseract",
    TextState.EMPTY: "without text",
    TextState.NO_WORDS: "scanned, without words in them",
    TextState.OTHER_KIND: "of kinds that hold no text",
    TextState.ENCRYPTED: "encrypted",
    TextState.DAMAGED: "damaged",
    TextState.TOO_COSTLY: "that would take too long to read",
    TextState.WAITING: "not looked at yet",
}


def _texts_shown(texts: Mapping[str, int]) -> str:
    """How many were read, and why others have none."""
    return ", ".join(
        f"{texts[state]:,} {said}" for state, said in TEXTS_SAID.items() if state in texts
    )


def tally_json(tally: ImportTally, refused: Sequence[Skipped], *, stored: bool) -> Data:
    """The same for programs."""
    streams: Data = {}
    for name, each in tally.streams.items():
        outcome = {"new": each.new, "updated": each.updated, "unchanged": each.unchanged}
        beyond = {"not_in_file": each.absent, "deleted": each.deleted} if each.absent else {}
        found = {"read": each.read, "rejected": each.rejected}
        texts = {"texts": each.texts} if each.texts else {}
        streams[name] = found | (outcome | beyond | texts if stored else {})
        if each.moved:
            streams[name]["joined_another_thread"] = each.moved
    skipped = [
        {
            "code": code,
            "count": count,
            "examples": [{"where": e.where, "reason": e.reason} for e in examples],
        }
        for code, count, examples in _skipped(tally, refused)
    ]
    unfinished = not DAMAGE.isdisjoint(each["code"] for each in skipped)
    noted = [each for each in skipped if each["code"] in NOTED]
    skipped = [each for each in skipped if each["code"] not in NOTED]
    span = {"earliest": tally.earliest, "latest": tally.latest}
    found: Data = {"streams": streams, "span": span, "skipped": skipped, "unfinished": unfinished}
    return found | ({"noted": noted} if noted else {})


def _skipped(
    tally: ImportTally, refused: Sequence[Skipped]
) -> list[tuple[str, int, list[Skipped]]]:
    counts = dict(tally.skipped_count)
    for each in refused:
        counts[each.code] = counts.get(each.code, 0) + 1
    known = [*refused, *tally.skipped]
    return [
        (code, count, [each for each in known if each.code == code])
        for code, count in counts.items()
    ]
