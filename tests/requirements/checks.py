"""What holds of every result, whatever was asked and whatever was answered."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs

from adapter.tests.reader import Text, ids_of
from pdpp_mcp_server import contract
from pdpp_mcp_server.calls import Outcome, ToolCall
from pdpp_mcp_server.contract import ResultBudget, published_contract
from pdpp_mcp_server.faces.record_identity import IDENTITY_MEMBERS
from pdpp_mcp_server.rs_client.answers import has_more, rows_of
from pdpp_mcp_server.rs_client.json_values import objects_in
from pdpp_mcp_server.safe_text import clean, clean_json
from pdpp_mcp_server.sdk_results import call_result
from tests.requirements.hostile import marker, unseen

Json = dict[str, Any]
validators = {
    name: jsonschema_rs.validator_for(tool.output_schema)
    for name, tool in published_contract().tools.items()
}


named_members = IDENTITY_MEMBERS - {"expanded"}


def _strip_figures(data: Json) -> None:
    data.pop("value", None)
    for group in objects_in(data.get("groups")):
        for name in ("key", "label", "then", "then_label", "until", "value"):
            group.pop(name, None)


def outside_payload(tool: str, structured: Json) -> Json:
    """The structured face without the places where record text may stand."""
    bare = json.loads(json.dumps(structured))
    if tool in {"query_records", "search"}:
        for row in rows_of(bare["data"]):
            for name in set(row) - named_members:
                del row[name]
        bare.get("page", {}).pop("data", None)
    if tool == "search":
        for row in bare["results"]:
            del row["title"], row["url"]
    if tool == "aggregate":
        _strip_figures(bare["data"])
    if tool == "fetch":
        for name in ("title", "text", "url"):
            del bare[name]
        for name in ("fields", "expanded"):
            bare["metadata"].pop(name, None)
    if tool == "read_record_field":
        del bare["window"]["text"]
        bare["window"].get("match", {}).pop("q", None)
    return bare


def check(call: ToolCall, outcome: Outcome) -> tuple[int, int]:
    """Every rule at once; the sizes of both faces."""
    tool, structured = call.tool, outcome.structured
    validators[tool].validate(structured)
    result, sizes = call_result(call, outcome)
    assert len(result.content) <= 1 + (outcome.image is not None) + contract.LINKS
    assert sizes[0] == len(outcome.text)
    check_budget(tool, outcome, sizes, call.budget)
    check_parity(call, outcome)
    assert not any(char in outcome.text for char in unseen), tool
    if outcome.is_error:
        assert set(structured) == {"error"}
        assert structured["error"]["code"] != "internal_error", outcome.text
        assert outcome.text.startswith(f"error {structured['error']['code'][:40]}")
        assert not outcome.links
    elif not (call.openai and tool == "search"):
        check_places(tool, outcome)
    return sizes


def check_budget(tool: str, outcome: Outcome, sizes: tuple[int, int], budget: ResultBudget) -> None:
    """No face above its limit, which an owner may have raised in proportion."""
    longer = budget.structured_aim
    page = (longer * 3 // 5, longer)
    limits = {
        "schema": (45_000, 45_000),
        "query_records": page,
        "aggregate": (longer * 3 // 5, max(45_000, longer)),
        "search": page,
        "fetch": (longer, longer),
        "read_record_field": (45_000, 45_000),
    }
    text, structured = (4_000, 6_000) if outcome.is_error else limits[tool]
    assert sizes[0] <= text, (tool, sizes)
    assert sizes[1] <= structured, (tool, sizes)


def check_places(tool: str, outcome: Outcome) -> None:
    """Record text stands under payload keys and inside the fence, and nowhere else."""
    assert marker not in json.dumps(outside_payload(tool, outcome.structured)), tool
    if tool in {"fetch", "schema"}:
        return
    face = Text(outcome.text)
    assert not any(marker in line for line in face.outside), tool
    if tool != "read_record_field":
        check_fence(face)


def check_fence(face: Text) -> None:
    """Every line between the fences begins as one of ours does, or with a plain key."""
    words = ("[", "{", "title: ", "source: ", "match ", "cut: ", "binary: ", "key ", "value ")
    words += ("deleted: ", "expanded ", "connection_id: ", "other_count")
    words += ("ids: ", "same: ", "null: ", "columns: ")
    keys = tuple(key for key, _ in face.table) if face.id_prefix is not None else ()
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._~@=+-]*", key) for key in keys), keys
    assert all(line.startswith((*words, *keys)) for line in face.fenced), face.fenced


def check_parity(call: ToolCall, outcome: Outcome) -> None:
    """What one face names, the other names too, in the same order."""
    tool, structured, face = call.tool, outcome.structured, Text(outcome.text)
    if outcome.is_error:
        advice = structured["error"].get("next_call")
        told = [{"tool": c.tool, "arguments": c.arguments} for c in face.calls()]
        assert told == cleaned([advice] if advice else [])
    elif tool == "fetch":
        assert json.loads(outcome.text) == structured
    elif tool == "read_record_field":
        check_window(structured, face)
    elif call.openai and tool == "search":
        shown = json.loads(outcome.text)
        assert shown["results"] == [
            {name: row[name] for name in ("id", "title", "url")} for row in structured["results"]
        ]
        assert shown.get("next", []) == structured["next"]
    else:
        check_lines(tool, structured, face)


def marks_of(call: Json, marks: Json) -> str | None:
    """The argument of a call that the first line of the text says instead."""
    held = (name for name, mark in marks.items() if mark and call["arguments"].get(name) == mark)
    return next(held, None)


def check_lines(tool: str, structured: Json, face: Text) -> None:
    bare = [{"tool": c["tool"], "arguments": c["arguments"]} for c in structured["next"]]
    marks = {name: face.fact(f"next_{name}") for name in ("cursor", "changes_since")}
    told = [c for c in bare if marks_of(c, marks) is None]
    assert [{"tool": c.tool, "arguments": c.arguments} for c in face.calls()] == cleaned(told)
    assert len(face.named("next")) == len(bare)
    codes = [line.split()[1] for line in face.named("warning")]
    own = [warning["code"] for warning in structured["warnings"]]
    assert codes == own
    if tool == "query_records":
        assert face.ids == ids_of(structured)
        assert len(face.ids) == len(rows_of(structured["data"]))
        shown = [entry["field_path"] for entry in structured["content_ladder"]]
        assert len(face.named("cut")) + len(face.named("binary")) == len(shown)
    if tool == "search":
        assert face.ids == [row["id"] for row in structured["results"]]
        assert len(face.ids) == len(rows_of(structured["data"]))
    if tool in {"query_records", "search"}:
        assert (face.fact("has_more") == "true") is (has_more(structured["data"]) is True)
    if tool == "aggregate" and "groups" in structured["data"]:
        groups = [line for line in face.fenced if line.startswith("key ")]
        assert len(groups) == len(rows_of({"data": structured["data"]["groups"]}))


LIKE_OURS = re.compile(
    r"(\A|[\n\r\x85\u2028\u2029])"
    r"(?=(?:BEGIN|END|next|previous|use|cut|binary|warning|unavailable|ignored|recall|fresh|source_mix|error)\b"
    r"|\[\d|\{)"
)


def check_window(structured: Json, face: Text) -> None:
    head, window = json.loads(face.head), structured["window"]
    for name in ("start_chars", "end_chars", "complete", "next_cursor", "previous_cursor"):
        assert head[name] == window[name]
    assert window["end_chars"] - window["start_chars"] == len(window["text"])
    # what could be taken for a line of ours, whatever ends a line, has a blank in front
    assert face.fenced == LIKE_OURS.sub(r"\1 ", clean(window["text"])).split("\n")
    assert ("resource" in structured) is (structured.get("resource") is not None)


def cleaned(value: Any) -> Any:
    return json.loads(clean_json(value))
