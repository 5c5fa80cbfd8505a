"""The call that finds the values near those that a filter names.

Rule: calls name near values by number and hold the caller's own words only.
Source: docs/contract/mcp-adapter.md 4.2, 7.2; docs/decisions.md C32, C37.
"""

from itertools import takewhile

from pdpp_kernel.operators import Operator
from pdpp_mcp_server.arguments import Arguments, without
from pdpp_mcp_server.errors import NextCall
from pdpp_mcp_server.rs_client.json_values import Json, as_list, as_object

CONTAINS, STARTS_WITH = Operator.CONTAINS.value, Operator.STARTS_WITH.value
SHORTEST_PART = 3
LONGEST_PART = 256


def near_calls(tool: str, arguments: Arguments, near: list[Json]) -> list[NextCall]:
    """The call that finds near values by the caller's own words, where there is one."""
    conditions = as_object(arguments.get("filter"))
    for row in near:
        field = str(row.get("field") or "")
        for sought in _words(conditions.get(field)):
            wider = _wider(sought, row["value"])
            if wider is None:
                continue
            numbers = [n for n, each in enumerate(near, 1) if _meets(wider, field, each)]
            listed = ", ".join(str(number) for number in numbers)
            kept = without(arguments, "cursor")
            changed = {**kept, "filter": {**conditions, field: wider}}
            return [NextCall(tool, changed, f"matches near {listed}")]
    return []


def _words(condition: object) -> list[str]:
    listed = as_list(as_object(condition).get(Operator.IN.value)) or [condition]
    return [word for word in listed if isinstance(word, str) and len(word) <= LONGEST_PART]


def _wider(sought: str, value: str) -> Json | None:
    if sought and sought.lower() in value.lower():
        return {CONTAINS: sought}
    letters = zip(sought.lower(), value.lower(), strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], letters))
    return {STARTS_WITH: sought[:shared]} if shared >= SHORTEST_PART else None


def _meets(wider: Json, field: object, row: Json) -> bool:
    value = row["value"].lower()
    if row.get("field") != field:
        return False
    if CONTAINS in wider:
        return str(wider[CONTAINS]).lower() in value
    return value.startswith(str(wider[STARTS_WITH]).lower())
