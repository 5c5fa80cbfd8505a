"""Prompts, and completions of their arguments and of templates.

Source: docs/contract/mcp-adapter.md 12. A prompt is a constant with the caller's words inserted as
JSON strings; no read is made. Completions come from one live schema read; whatever goes wrong is
an empty list, never an error.
"""

from collections.abc import Iterable, Mapping

import msgspec

from pdpp_mcp_server import contract
from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.reads import read_catalog
from pdpp_mcp_server.rs_client.json_values import Json, as_object, compact
from pdpp_mcp_server.safe_text import one_line
from pdpp_mcp_server.schema_document import (
    CatalogRow,
    all_connections,
    catalog_rows,
    covers,
)


class PromptArgument(msgspec.Struct, frozen=True):
    """One argument of a prompt."""

    name: str
    description: str
    required: bool = False


class Prompt(msgspec.Struct, frozen=True):
    """One prompt; words come first, given arguments follow as facts."""

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...]
    words: str

    def render(self, given: Mapping[str, str]) -> str:
        """The message for these arguments.

        Raises: UnusableArguments.
        """
        known = {argument.name for argument in self.arguments}
        unknown = sorted(set(given) - known)
        missing = [
            a.name for a in self.arguments if a.required and not given.get(a.name, "").strip()
        ]
        if unknown or missing:
            raise UnusableArguments(missing, unknown)
        facts = [
            f"{argument.name}: {_inserted(given[argument.name])}"
            for argument in self.arguments
            if given.get(argument.name, "").strip()
        ]
        return "\n".join([self.words, *facts])


class UnusableArguments(Exception):
    """Arguments that are missing or not known."""

    def __init__(self, missing: list[str], unknown: list[str]) -> None:
        super().__init__("unusable prompt arguments")
        self.missing = missing
        self.unknown = [one_line(name, contract.QUOTED_VALUE) for name in unknown]

    @property
    def message(self) -> str:
        """The two lists in words."""
        parts = [f"missing: {', '.join(self.missing)}"] if self.missing else []
        parts += [f"unknown: {', '.join(self.unknown)}"] if self.unknown else []
        return f"Prompt arguments {'; '.join(parts)}"


def _inserted(value: str) -> str:
    return compact(one_line(value)[: contract.PROMPT_ARGUMENT])


STREAM = PromptArgument("stream", "Stream to look in; see schema.")
CONNECTION = PromptArgument("connection_id", "One configured source; see schema.")
STREAM_TEMPLATE = "pdpp://stream/{name}"
STATE_GAPS = "Say plainly what was not covered: partial results, unavailable sources, cut text."

PROMPTS: dict[str, Prompt] = {
    prompt.name: prompt
    for prompt in (
        Prompt(
            "what_is_shared",
            "What is shared here",
            "Explains in plain words what this access covers.",
            (),
            "Call `schema` without arguments. Then tell in plain words what this access covers,"
            " from which sources, under which limits, and what is unavailable and why.",
        ),
        Prompt(
            "answer_with_evidence",
            "Answer with evidence",
            "Answers a question from the shared records, with citations.",
            (PromptArgument("question", "What to find out.", required=True), STREAM, CONNECTION),
            "Answer the question below from the shared records. Search first, read what matters"
            " with `fetch` or `read_record_field`, and give the id and url of every record the"
            f" answer rests on. {STATE_GAPS}",
        ),
        Prompt(
            "timeline",
            "Timeline",
            "Orders what happened around a topic by time.",
            (
                PromptArgument("topic", "What the timeline is about.", required=True),
                STREAM,
                CONNECTION,
                PromptArgument("since", "First day, such as 2026-01-01."),
                PromptArgument("until", "Day after the last one."),
            ),
            "Make a timeline of the topic below. Find dated records with `search` and"
            " `query_records`, order them by the time they happened, not by the time they were"
            f" taken in, and cite each by id. Note gaps. {STATE_GAPS}",
        ),
        Prompt(
            "stream_overview",
            "Stream overview",
            "Counts, time range and a few samples of one stream.",
            (
                PromptArgument("stream", "Stream to describe; see schema.", required=True),
                CONNECTION,
                PromptArgument("field", "Field to group by."),
            ),
            "Describe the stream below: call `schema` for its fields, `aggregate` for counts and"
            " the time range (and groups of the field, if one is given), then show a few records"
            f" with `query_records` and `fields`. {STATE_GAPS}",
        ),
    )
}


class Completions(msgspec.Struct, frozen=True):
    """Matching values, best first, and how many there are in all."""

    values: list[str]
    total: int


NOTHING = Completions([], 0)


async def complete(
    call: ToolCall,
    *,
    prompt: str | None,
    uri: str | None,
    name: str,
    typed: str,
    chosen: Mapping[str, str],
) -> Completions:
    """Values for one argument of a prompt or template."""
    kind = _kind(prompt, uri, name)
    if kind is None or (kind == "field" and not chosen.get("stream")):
        return NOTHING
    scope = (("stream", chosen["stream"]),) if kind == "field" else ()
    catalog = await read_catalog(call, scope)
    if catalog is None:
        return NOTHING
    return matching(_values(kind, catalog, chosen), typed)


def _kind(prompt: str | None, uri: str | None, name: str) -> str | None:
    if uri is not None:
        return "stream" if uri == STREAM_TEMPLATE and name == "name" else None
    known = PROMPTS.get(prompt or "")
    if known is None or all(argument.name != name for argument in known.arguments):
        return None
    return name if name in {"stream", "connection_id", "field"} else None


def _values(kind: str, catalog: Json, chosen: Mapping[str, str]) -> Iterable[str]:
    rows = [row for row in catalog_rows(catalog) if _is_chosen(row, kind, chosen)]
    if kind == "stream":
        return {row.name for row in rows}
    if kind == "field":
        return {name for row in rows for name in as_object(row.row.get("field_capabilities"))}
    listed = {c.connection_id for row in rows for c in row.connections}
    return listed if chosen.get("stream") else listed | set(all_connections(catalog))


def _is_chosen(row: CatalogRow, kind: str, chosen: Mapping[str, str]) -> bool:
    stream, connection = chosen.get("stream"), chosen.get("connection_id")
    if kind != "stream" and stream and row.name != stream:
        return False
    return kind == "connection_id" or not connection or covers(row, connection)


def matching(values: Iterable[str], typed: str) -> Completions:
    """Prefix matches first, then substrings, each sorted; without regard to case."""
    prefix = typed.casefold()
    ordered = sorted(value for value in values if value)
    found = [value for value in ordered if prefix in value.casefold()]
    found.sort(key=lambda value: not value.casefold().startswith(prefix))
    return Completions(found[: contract.COMPLETIONS], len(found))
