"""What an import would bring, in the terminal: how many records, and how the first one reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from rich.console import Console

from pdpp_kernel.source_item import Data
from pdpp_mcp_server.commands.tables import indented, table
from personal_server.collecting.imports import ImportTally
from personal_server.collecting.survey import SurveyTally

_LONGEST_VALUE_CHARS = 60


def print_survey(tally: ImportTally, out: Console) -> None:
    """A line for each stream, then its first record."""
    rows = [(f"  {name}", each.read, each.rejected) for name, each in tally.streams.items()]
    out.print(table(("  stream", "would be imported", "rejected"), rows))
    first = tally.first if isinstance(tally, SurveyTally) else dict[str, Data]()
    for stream, record in first.items():
        indented(f"the first of {stream}:", 2, out)
        out.print(table(("    field", "value"), list(_shown(record))))


def _shown(record: Mapping[str, object]) -> list[tuple[str, str]]:
    """Each field that has a value, cut to a line."""
    values = {name: _line(value) for name, value in record.items() if value not in (None, [], "")}
    return [(f"    {name}", value) for name, value in values.items() if name != "id"]


def _line(value: object) -> str:
    texts = map(str, cast("list[object]", value)) if isinstance(value, list) else [str(value)]
    line = " ".join(", ".join(texts).split())
    return line if len(line) <= _LONGEST_VALUE_CHARS else f"{line[:_LONGEST_VALUE_CHARS]}…"
