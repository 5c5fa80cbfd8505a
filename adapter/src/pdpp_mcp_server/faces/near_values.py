"""Visible values near those that a filter or a search names.

Rule: near values are record text: in the structured face they stand in `near`, in the text face
inside the fence; calls name them by number and hold the caller's own words only.
Source: docs/contract/mcp-adapter.md 4.2, 7.2; docs/decisions.md C32, C37.
"""

from pdpp_mcp_server import contract
from pdpp_mcp_server.arguments import without
from pdpp_mcp_server.rs_client.answers import meta_of
from pdpp_mcp_server.rs_client.json_values import Json, as_count, as_object, as_text, objects_in
from pdpp_mcp_server.safe_text import label, preview_json

NEAR_MEMBERS = ("field", "word", "value", "count", "searched", "twin", "listed")
NEAR_POINTER = "/near/*/value"


def near_in(body: Json) -> list[Json]:
    """The near values that a server stated: of a field, or near a word of the caller's."""
    return [
        {name: row[name] for name in NEAR_MEMBERS if name in row}
        for row in objects_in(meta_of(body).get("near"))
        if as_text(row.get("field")) or as_text(row.get("word"))
        if as_text(row.get("value")) and as_count(row.get("count")) is not None
    ][: contract.NEAR_VALUES]


def without_near(body: Json) -> Json:
    """The envelope but for its near values, which stand beside it."""
    if "near" not in meta_of(body):
        return body
    return {**body, "meta": without(as_object(body.get("meta")), "near")}


def near_lines(near: list[Json]) -> list[str]:
    """The lines inside the fence, by number."""
    return [
        _near_line(number, row, preview_json(row["value"][: contract.GROUP_KEY]))
        for number, row in enumerate(near, 1)
    ]


def _near_line(number: int, row: Json, value: str) -> str:
    asked = label(str(row.get("field") or row["word"]))
    if row.get("searched") is True:
        return f"near {number}: searched instead: {asked} → {value} ({row['count']})"
    twin = "; also written so" if row.get("twin") is True else ""
    listed = "; not near, listed because there are few" if row.get("listed") is True else ""
    return f"near {number}: {asked} {value} ({row['count']}){twin}{listed}"
