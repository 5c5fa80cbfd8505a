"""Groups of an aggregate as text: every group, its key as JSON, its count and value.

Source: MCP adapter contract 8.2, 10.3; decision C28.
"""

import re

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.cleaning import clean_json, one_line
from personal_server.mcp_adapter.evidence.binary import binary_facts
from personal_server.rs_client.json_values import Json, as_text, objects_in

iso_moment = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?")


def is_plain_value(value: object) -> bool:
    """Whether a single value may stand outside the fence: a number, a moment, or nothing."""
    if isinstance(value, str):
        return bool(iso_moment.fullmatch(value))
    return value is None or isinstance(value, int | float)


def value_text(value: object) -> str:
    """A value as JSON, strings cut."""
    if isinstance(value, str):
        if iso_moment.fullmatch(value):
            return value
        return clean_json(_cut(value))
    return one_line(clean_json(value), budgets.group_key)


def _cut(value: str) -> str:
    facts = binary_facts(value)
    if facts is not None:
        return facts.placeholder
    if len(value) <= budgets.group_key:
        return value
    return value[: budgets.group_key] + "…"


def group_lines(body: Json, metric: str) -> list[str]:
    """One line for each group, then what the limit left out."""
    lines = [_line(group, metric) for group in objects_in(body.get("groups"))]
    if not lines:
        return []
    if body.get("other_count") is not None:
        rest = f"other_count = {value_text(body['other_count'])} (in groups beyond limit)"
        if body.get("other_value") is not None:
            rest += f"; other_value = {value_text(body['other_value'])}"
        lines.append(rest)
    return lines


def _line(group: Json, metric: str) -> str:
    key = _key(group.get("key"))
    start = as_text(group.get("start"))
    moment = f"start {one_line(start, budgets.label)}" if start else ""
    if metric == "count":
        return f"key {key} = {value_text(group.get('count'))}" + (f" ({moment})" if moment else "")
    notes = [f"records {value_text(group.get('count'))}", *([moment] if moment else [])]
    return f"key {key} = {value_text(group.get('value'))} ({'; '.join(notes)})"


def _key(value: object) -> str:
    return clean_json(_cut(value)) if isinstance(value, str) else value_text(value)
