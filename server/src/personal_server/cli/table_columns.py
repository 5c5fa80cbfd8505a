"""The columns of a table in the report of its import: what each is read as, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from pdpp_kernel.source_item import Data
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import indented, table
from pdpp_sources.reader_messages import COLUMN_KINDS, SeenColumn

# Why a column is read as it is, by the word that its reader gives.
WHY = {
    "leading_zero": "a code: some of its digits begin with 0",
    "plus_sign": "a code: some of its digits begin with +",
    "long_digits": "a code: more digits than a number keeps",
    "guarded": 'a code: the file protects its digits (="…")',
    "code_name": "a code, by its name",
    "check_digit": "a code: its last digits check the others",
    "day_first": "the day comes before the month, as its cells show",
    "month_first": "the month comes before the day, as its cells show",
    "day_first_as_others": "the day comes before the month, as in the other columns",
    "month_first_as_others": "the month comes before the day, as in the other columns",
    "undecided_days": "text: days, but nothing shows whether day or month comes first",
    "several_currencies": "text: amounts in several currencies",
    "point_as_others": "decimals are written as in the other columns",
    "semicolons": "commas begin decimals, since semicolons part the cells",
    "yyyymmdd": "every number is a day (YYYYMMDD)",
    "yyyymmddhhmmss": "every number is an instant (YYYYMMDDHHMMSS)",
    "owner": "as you said",
    "as_before": "as in earlier files",
}
_COUNTED = "counts {} since {}"


def kinds_said(arguments: Sequence[str]) -> dict[str, str]:
    """What `--column NAME=KIND` says, by name. Raises: CommandError (`usage`)."""
    kinds: dict[str, str] = {}
    for argument in arguments:
        name, _, kind = argument.rpartition("=")
        if not name or kind not in COLUMN_KINDS:
            raise CommandError(
                "usage",
                f"--column {argument} names no column and what it holds.",
                f"Write --column NAME=KIND; kinds are {', '.join(COLUMN_KINDS)}.",
            )
        kinds[name] = kind
    return kinds


def columns_json(
    columns: Sequence[SeenColumn], changed: Mapping[tuple[str, str], str]
) -> list[Data]:
    """For programs: every column, with a word of why where that is no matter of course.

    Shapes: `changed` is the type that a column had before, by its stream and its name.
    """
    return [
        {"stream": c.stream, "column": c.name, "field": c.field, "type": c.kind}
        | ({"why": c.why} if c.why else {})
        | ({"was": changed[c.stream, c.name]} if (c.stream, c.name) in changed else {})
        | {"examples": c.examples}
        for c in columns
    ]


def print_columns(
    columns: Sequence[SeenColumn],
    changed: Mapping[tuple[str, str], str],
    out: Console,
    *,
    stored: bool,
) -> None:
    """Before an import every column with examples; after one those that are no matter of course."""
    if stored:
        for column in columns:
            if column.why != "as_before" and (reason := _why(column.why)):
                indented(f"{column.name}: {reason}", 2, out)
            if was := changed.get((column.stream, column.name)):
                again = "import earlier files again to correct them"
                indented(f"{column.name}: was {was}, is {column.kind} now; {again}", 2, out)
    else:
        rows = [
            (f"  {c.name}", c.kind, " · ".join(c.examples) or "(empty)", _why(c.why))
            for c in columns
        ]
        out.print(table(("  column", "read as", "examples", "why"), rows))
    if any(column.why == "undecided_days" for column in columns):
        name = next(column.name for column in columns if column.why == "undecided_days")
        forms = f'--column "{name}=day" or --column "{name}=month-first"'
        hint = f"Say whether its dates begin with the day or the month: {forms}"
        indented(hint, 2, out)


def _why(word: str) -> str:
    """The sentence for a word; an epoch names its unit and its year."""
    unit, _, year = word.partition(" ")
    return _COUNTED.format(unit, year) if year.isdecimal() else WHY.get(word, "")
