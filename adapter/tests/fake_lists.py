"""Lists of the recording server: what passes, what is cut, where a page begins."""

from __future__ import annotations

import json

from adapter.tests.fake_wire import Json, Request


def passes(data: Json, request: Request) -> bool:
    for name in dict.fromkeys(name for name, _ in request.query):
        if not name.startswith("filter["):
            continue
        values = request.values(name)
        value = values[0]
        field_name, _, operator = name.removeprefix("filter[").removesuffix("]").partition("][")
        held = data.get(field_name)
        text = json.dumps(held) if isinstance(held, bool | int | float) else str(held)
        passed = {
            "": text == value,
            "gte": text >= value,
            "gt": text > value,
            "lte": text <= value,
            "lt": text < value,
            "in": text in values,
            "ne": held is not None and text != value,
            "contains": value.lower() in text.lower(),
            "starts_with": text.lower().startswith(value.lower()),
            "exists": (held is not None) is (value == "true"),
        }
        if not passed[operator]:
            return False
    return True


def cut_row(row: Json, request: Request) -> Json:
    fields = request.values("fields")
    if not fields:
        return dict(row)
    kept = {name: value for name, value in row["data"].items() if name in {*fields, "id"}}
    return {**row, "data": kept}


def expand_limits(request: Request) -> dict[str, int]:
    return {
        name.removeprefix("expand_limit[").removesuffix("]"): int(value)
        for name, value in request.query
        if name.startswith("expand_limit[")
    }


def offset_of(request: Request) -> int | None:
    cursor = (request.values("cursor") or ["off-0"])[0]
    number = cursor.removeprefix("off-")
    return int(number) if cursor.startswith("off-") and number.isdigit() else None


def envelope(request: Request, rows: list[Json], following: int | None) -> Json:
    path = "/" + "/".join(request.path)
    body: Json = {"object": "list", "url": path, "data": rows, "has_more": following is not None}
    if following is not None:
        body["next_cursor"] = f"off-{following}"
    body["links"] = {"self": path, "next": f"{path}?cursor=off-{following}" if following else None}
    return {**body, "meta": {"count": {"kind": "none"}, "warnings": []}}
