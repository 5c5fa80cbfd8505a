"""Units of figures and rows in the text face, and the call that keeps several units apart.

Rule: a unit is record text; one that reads like a currency code may stand in the head line, any
other inside the fence.  Calls name fields, never units.
Source: docs/contract/mcp-adapter.md 10.2.3, 10.3; docs/decisions.md C37, C42.
"""

import re
from collections.abc import Callable

from pdpp_mcp_server import contract
from pdpp_mcp_server.arguments import Arguments, legal_call, without
from pdpp_mcp_server.errors import NextCall
from pdpp_mcp_server.faces.text import server_warnings
from pdpp_mcp_server.rs_client.answers import meta_of
from pdpp_mcp_server.rs_client.json_values import Json, as_list, as_object, as_text
from pdpp_mcp_server.rs_client.port import Query
from pdpp_mcp_server.safe_text import label, one_line

MIXED = frozenset({"mixed_currencies", "mixed_units", "units_unknown"})
PLAIN_UNIT = re.compile(r"[A-Z]{3}( minor)?")
SHARED_ARGUMENTS = ("stream", "filter", "connection_id")


def is_plain_unit(unit: str) -> bool:
    """Whether a unit may stand outside the fence."""
    return PLAIN_UNIT.fullmatch(unit) is not None


def in_unit(value: str, unit: str | None) -> str:
    """A value with its unit, where it has one."""
    return f"{value} {one_line(unit, contract.LABEL)}" if unit and value != "null" else value


def unit_lines(body: Json) -> list[str]:
    """The line inside the fence that says in which units the fields of a page are."""
    units = as_object(meta_of(body).get("units"))
    named = ((name, text) for name, unit in units.items() if (text := as_text(unit)))
    listed = ", ".join(f"{label(name)} in {one_line(text, contract.LABEL)}" for name, text in named)
    return [f"units: {listed}"] if listed else []


def unit_calls(
    tool: str,
    arguments: Arguments,
    body: Json,
    check_shape: Callable[[Arguments], Query] | None = None,
) -> list[NextCall]:
    """The calls that tell the units apart which a figure, an order or a page mixes."""
    calls: list[NextCall] = []
    left_out: list[str] = []
    for warning in server_warnings(body):
        detail = as_object(warning.get("detail"))
        by, added = as_text(detail.get("group_by")), as_text(detail.get("add_field"))
        if warning.get("code") not in MIXED:
            continue
        if tool == "aggregate" and by and check_shape:
            call = legal_call(tool, _grouped_by(arguments, by), check_shape)
            return [NextCall(call.tool, call.arguments, "a figure for each unit")] if call else []
        if by:
            kept = {name: arguments[name] for name in SHARED_ARGUMENTS if name in arguments}
            grouped = {**kept, "metric": "count", "group_by": by}
            call = NextCall("aggregate", grouped, "how many records each unit has")
            calls += [] if call in calls else [call]  # two amounts may have one currency
        elif added and "fields" in arguments and added not in left_out:
            left_out.append(added)
    if left_out:
        fields = [*as_list(arguments["fields"]), *left_out]
        kept = {**without(arguments, "cursor"), "fields": fields}
        calls.append(NextCall(tool, kept, "each row with its unit"))
    return calls


def _grouped_by(arguments: Arguments, by: str) -> Arguments:
    """The same figures by unit: as a further grouping, in the place of one that is too many."""
    kept = without(arguments, "limit")
    if "group_by" not in kept or "group_by_time" in kept:
        return {**without(kept, "bin"), "group_by": by}
    return {**kept, "then_by": by}
