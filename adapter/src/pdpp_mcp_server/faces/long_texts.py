"""Texts that are longer than hosts show: what leads on stands at both ends.

Source: docs/contract/mcp-adapter.md 7.1.
"""

from collections.abc import Iterable, Sequence

from pdpp_mcp_server import contract
from pdpp_mcp_server.errors import NextCall
from pdpp_mcp_server.faces.text import joined, next_lines, warning_lines
from pdpp_mcp_server.rs_client.json_values import Json
from pdpp_mcp_server.safe_text import clean_json

REPEATED = "repeated:"


def both_ends(face: str, calls: Sequence[NextCall], warnings: Iterable[Json]) -> str:
    """A text with its calls behind its first line, and with them and its warnings at its end."""
    head, _, rest = face.partition("\n")
    return joined([head], next_lines(calls), [rest], _repeated(calls, warnings))


def schema_both_ends(face: str, calls: Sequence[NextCall], warnings: Sequence[Json]) -> str:
    """The same of a schema, whose text has its warnings and calls; at the end if there is room."""
    leading = [*warning_lines(warnings), *next_lines(calls)]
    head, *rest = face.split("\n")
    rest = [line for line in rest if line not in leading]
    whole = joined([head], leading, rest, _repeated(calls, warnings))
    grows_too_long = len(face) <= contract.SCHEMA_TEXT_LIMIT < len(whole)
    return joined([head], leading, rest) if grows_too_long else whole


def walked_on(face: str, lines: Iterable[str]) -> str:
    """A window with its calls at its end, too."""
    return joined([face], (f"{REPEATED} {line}" for line in lines))


def _repeated(calls: Iterable[NextCall], warnings: Iterable[Json]) -> list[str]:
    """Calls, in full, and warnings once more."""
    said = (f"{call.tool} {clean_json(dict(call.arguments))}" for call in calls)
    return [f"{REPEATED} {line}" for line in (*said, *warning_lines(warnings))]
