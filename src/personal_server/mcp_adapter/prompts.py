"""Prompts: constants with the caller's words inserted as JSON strings; no read is made.

Source: MCP adapter contract 12.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.cleaning import one_line
from personal_server.rs_client.json_values import compact


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a prompt."""

    name: str
    description: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt; words come first, given arguments follow as facts."""

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
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
        self.unknown = [one_line(name, budgets.quoted_value) for name in unknown]

    @property
    def message(self) -> str:
        """The two lists in words."""
        parts = [f"missing: {', '.join(self.missing)}"] if self.missing else []
        parts += [f"unknown: {', '.join(self.unknown)}"] if self.unknown else []
        return f"Prompt arguments {'; '.join(parts)}"


def _inserted(value: str) -> str:
    return compact(one_line(value)[: budgets.prompt_argument])


stream = Argument("stream", "Stream to look in; see schema.")
connection = Argument("connection_id", "One configured source; see schema.")
tell_gaps = "Say plainly what was not covered: partial results, unavailable sources, cut text."

prompts: dict[str, Prompt] = {
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
            (Argument("question", "What to find out.", required=True), stream, connection),
            "Answer the question below from the shared records. Search first, read what matters"
            " with `fetch` or `read_record_field`, and give the id and url of every record the"
            f" answer rests on. {tell_gaps}",
        ),
        Prompt(
            "timeline",
            "Timeline",
            "Orders what happened around a topic by time.",
            (
                Argument("topic", "What the timeline is about.", required=True),
                stream,
                connection,
                Argument("since", "First day, such as 2026-01-01."),
                Argument("until", "Day after the last one."),
            ),
            "Make a timeline of the topic below. Find dated records with `search` and"
            " `query_records`, order them by the time they happened, not by the time they were"
            f" taken in, and cite each by id. Note gaps. {tell_gaps}",
        ),
        Prompt(
            "stream_overview",
            "Stream overview",
            "Counts, time range and a few samples of one stream.",
            (
                Argument("stream", "Stream to describe; see schema.", required=True),
                connection,
                Argument("field", "Field to group by."),
            ),
            "Describe the stream below: call `schema` for its fields, `aggregate` for counts and"
            " the time range (and groups of the field, if one is given), then show a few records"
            f" with `query_records` and `fields`. {tell_gaps}",
        ),
    )
}
