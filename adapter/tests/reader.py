"""A reader that sees text only, and finds its way by the grammar of the text face."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from pdpp_mcp_server.handles import parse_id
from pdpp_mcp_server.rs_client.answers import rows_of

Json = dict[str, Any]
cells = re.compile(r'("(?:[^"]|"")*"|[^,]*),')
moment = re.compile(r"\d{4}-\d{2}-\d{2}.*")


def ids_of(structured: Json) -> list[str]:
    """The ids of a page of records, in its order."""
    if "record_ids" in structured:
        return structured["record_ids"]
    prefix = structured["page"]["id_prefix"]
    return [prefix + row["id"] for row in rows_of(structured["data"])]


def hits_of(structured: Json) -> list[Json]:
    """The hits of a search, each with what its result and its id say, and what all say alike."""
    page: Json = structured.get("page", {})
    hits = zip(rows_of(structured["data"]), structured["results"], strict=True)
    return [_whole_hit({**page, **hit, **result}) for hit, result in hits]


def _whole_hit(hit: Json) -> Json:
    ref = parse_id(hit["id"]) if "record_id" not in hit else None
    spelled = {"stream": ref.stream, "record_id": ref.record_id} if ref else {}
    field = {"field_path": hit.pop("field_path")} if "field_path" in hit else {}
    excerpts = [
        {"preview_text": hit["title"], **field, **each} for each in hit.get("evidence_excerpts", ())
    ]
    return {**spelled, **hit, **({"evidence_excerpts": excerpts} if excerpts else {})}


def records_of(structured: Json) -> list[Json]:
    """The records of a page, each with what stands once for all of them."""
    page: Json = structured.get("page", {})
    own = page.get("id_field")
    alike = {n: v for n, v in page.items() if n not in {"id_prefix", "id_field", "data"}}
    found: list[Json] = []
    for row in rows_of(structured["data"]):
        whole = {**alike, **row}
        if "data" in row:
            key = {own: row["id"]} if own else {}
            whole["data"] = {**page.get("data", {}), **key, **row["data"]}
        found.append(whole)
    return found


def value_of(cell: str) -> Any:
    """What one cell of a table says."""
    if cell.startswith('"'):
        text = cell[1:-1].replace('""', '"')
        if text[:1] in {"[", "{"}:
            return json.loads(text)
        return re.sub(r"\\(.)", lambda found: {"n": "\n", "r": "\r"}.get(found[1], found[1]), text)
    if cell == "" or moment.fullmatch(cell):
        return cell or None
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def cells_of(line: str) -> list[str]:
    """The cells of one line of a table."""
    return cells.findall(line + ",")


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Text:
    """One text face."""

    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @property
    def head(self) -> str:
        return self.lines[0]

    def fact(self, name: str) -> str | None:
        found = re.search(rf'(?:[:;] |^){name}=("(?:[^"\\]|\\.)*"|[^;]*)', self.head)
        if found is None:
            return None
        return json.loads(found[1]) if found[1].startswith('"') else found[1]

    @property
    def first_id(self) -> str | None:
        found = re.search(r"; first_id=(.*)$", self.head)
        if found is None:
            return None
        return self.ids[0] if found[1] == "[1]" else found[1]

    @property
    def ids(self) -> list[str]:
        prefix = self.id_prefix
        if prefix is not None:
            return [prefix + key for key, _ in self.table]
        return [m[1] for line in self.fenced if (m := re.fullmatch(r"\[\d+\] (.*)", line))]

    @property
    def id_prefix(self) -> str | None:
        found = [re.fullmatch(r"ids: (.*)<first column>", line) for line in self.fenced]
        return next((match[1] for match in found if match), None)

    @property
    def table(self) -> list[tuple[str, Json | None]]:
        """Keys and values of the rows of a table; a deleted row has no values."""
        lines = self.fenced
        start = next(n for n, line in enumerate(lines) if line.startswith("columns: "))
        own, *names = cells_of(lines[start].removeprefix("columns: "))
        found: list[tuple[str, Json | None]] = []
        for line in lines[start + 1 :]:
            if line.startswith("deleted: "):
                found.append((line.split(" ")[1], None))
            elif not line.startswith(("cut: ", "binary: ")):
                key, *rest = cells_of(line)
                # A host that shows less may have cut the last line.
                row = dict(zip(map(value_of, names), map(value_of, rest), strict=False))
                found.append((key, row if own == "key" else {own: key, **row}))
        return found

    @property
    def alike(self) -> Json:
        """What all records of the page say."""
        same = [json.loads(line.removeprefix("same: ")) for line in self.named("same")]
        empty = [cells_of(line.removeprefix("null: ")) for line in self.named("null")]
        names = {value_of(name): None for line in empty for name in line}
        return {**(same[0] if same else {}), **names}

    @property
    def sub_ids(self) -> list[str]:
        return [m[1] for line in self.fenced if (m := re.fullmatch(r"\[\d+\.\d+\] (.*)", line))]

    @property
    def records(self) -> list[Json]:
        alike = self.alike
        if self.id_prefix is not None:
            return [{**alike, **row} for _, row in self.table if row is not None]
        return [{**alike, **json.loads(line)} for line in self.fenced if line.startswith("{")]

    @property
    def fenced(self) -> list[str]:
        for number, line in enumerate(self.lines):
            found = re.match(r"BEGIN ([0-9a-f]{12}) \| ", line)
            if found:
                end = self.lines.index(f"END {found[1]}", number)
                return self.lines[number + 1 : end]
        return []

    @property
    def outside(self) -> list[str]:
        inside = len(self.fenced)
        starts = [n for n, line in enumerate(self.lines) if line.startswith("BEGIN ")]
        if not starts:
            return self.lines
        return self.lines[: starts[0]] + self.lines[starts[0] + inside + 2 :]

    def named(self, word: str) -> list[str]:
        return [line for line in self.lines if line.startswith(f"{word}: ")]

    def calls(self, word: str = "next") -> list[Call]:
        found: list[Call] = []
        for line in self.lines:
            match = re.match(rf"{word}: (?:.*? )?(\w+) (\{{.*)$", line)
            if match:
                found.append(Call(match[1], json.loads(match[2])))
        return found

    def following(self, tool: str, arguments: Json) -> Call | None:
        """The first ready call that goes on; a page says the cursor or bookmark of it once."""
        said = [line for line in self.named("next") if "the same call with " in line]
        if not said:
            return next(iter(self.calls()), None)
        argument, _, fact = said[0].split("the same call with ")[1].split(",")[0].split(" ")
        rest = {name: value for name, value in arguments.items() if name != "cursor"}
        return Call(tool, {**rest, argument: self.fact(fact)})

    @property
    def window(self) -> str:
        return "\n".join(self.fenced)
