"""Five hosts that show different parts of a result; each has to find its way with what it sees."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from adapter.tests.reader import Call, Text, ids_of, records_of
from pdpp_mcp_server.contract import published_contract
from tests.requirements.doors import Result

Json = dict[str, Any]
window_chars = 4_000


class View:
    """What a host shows of one result, and how a reader uses it."""

    name = "text-only"

    def __init__(self, tool: str, arguments: Mapping[str, Any], result: Result) -> None:
        self.tool = tool
        self.arguments = dict(arguments)
        self.result = result
        self.text = Text(result.text)

    @property
    def document(self) -> Json:
        """The five members of a fetched record."""
        return json.loads(self.result.text)

    def ids(self) -> list[str]:
        return [self.document["id"]] if self.tool == "fetch" else self.text.ids

    def is_whole(self) -> bool:
        """Whether everything that the first line counts is in sight."""
        return True

    def fact(self, name: str) -> str | None:
        return self.text.fact(name)

    def following(self) -> Call | None:
        """The first ready call that goes on."""
        return self.text.following(self.tool, self.arguments)

    def cut(self) -> Call | None:
        """The call that continues the first cut value."""
        if self.tool == "fetch":
            return _read(self.document["metadata"]["content_ladder"])
        calls = self.text.calls("cut")
        return calls[0] if calls else None

    def blob_uri(self) -> str:
        """Where the bytes of the first binary value are."""
        return re.findall(r"pdpp://blob/\S+", "\n".join(self.text.named("binary")))[0]

    def error_code(self) -> str | None:
        found = re.match(r"error (\S+): ", self.text.head)
        return found[1] if found else None

    def wait_seconds(self) -> int:
        """How long a refused reader has to wait."""
        return int(self.text.named("retry_after")[0].split(": ")[1])

    def connections(self) -> list[str]:
        """Connections offered by an ambiguity, those with the stream first."""
        rows = [line.split(": ", 1)[1].split(" | ") for line in self.text.named("connection")]
        return [row[0] for row in sorted(rows, key=lambda row: "has_stream=false" in row)]

    def streams(self) -> list[str]:
        """Stream names of an index."""
        listed = [line for line in self.text.lines if line.startswith("streams ")]
        return [name for line in listed for name in line.split(": ", 1)[1].split("; ")]

    def unavailable(self) -> list[str]:
        return [line.split(": ", 1)[1].split(" | ")[0] for line in self.text.named("unavailable")]

    def window(self) -> str:
        return self.text.window

    def values(self) -> str:
        """Everything that a reader could quote."""
        return self.result.text

    def schema_of(self, field: str) -> Json:
        lines = self.text.named(f"schema {field}")
        return json.loads(lines[0].split(": ", 1)[1])

    def other_count(self) -> int:
        return int(self.fact("other_count") or 0)

    def group_count(self) -> int:
        return sum(line.startswith("key ") for line in self.text.fenced)

    def groups(self) -> list[tuple[Any, float]]:
        """Keys and numbers of an aggregate, in order."""
        found = [re.match(r"key (.*?) = ([-0-9.]+)(?: |$)", line) for line in self.text.fenced]
        return [(json.loads(match[1]), float(match[2])) for match in found if match]

    def entries(self) -> list[Json]:
        """Groups as they are said: keys, labels, and `figure`."""
        return [_entry(line) for line in self.text.fenced if line.startswith("key ")]

    def near(self) -> list[tuple[str, Any, int]]:
        """Field, value and number of records of what is near a value that nothing has."""
        found = [re.match(r"near \d+: (\S+) (.*) \((\d+)\)$", line) for line in self.text.fenced]
        return [(each[1], json.loads(each[2]), int(each[3])) for each in found if each]

    def warnings(self) -> set[str]:
        return {line.split(" ")[1] for line in self.text.named("warning")}

    def size_chars(self) -> int:
        """How long the whole field of a window is."""
        return json.loads(self.text.head)["size_chars"]

    def value(self) -> str:
        """The number or moment of an ungrouped aggregate, without the unit that follows it."""
        found = re.match(r"aggregate: .*? = ([^;]+?)(?: [A-Z]{3})?(?:;|$)", self.text.head)
        assert found is not None
        return found[1]

    def rows(self) -> list[Json]:
        """The members of the records of a page."""
        return self.text.records

    def titles(self) -> list[str]:
        return [line.removeprefix("title: ") for line in self.text.named("title")]


class StructuredOnly(View):
    """A host that shows `structuredContent` and nothing else."""

    name = "structured-only"

    @property
    def seen(self) -> Json:
        return self.result.structured

    @property
    def document(self) -> Json:
        return self.seen

    def ids(self) -> list[str]:
        if self.tool == "search":
            return [row["id"] for row in self.seen["results"]]
        return [self.seen["id"]] if self.tool == "fetch" else ids_of(self.seen)

    def fact(self, name: str) -> str | None:
        data = self.seen["data"]
        if name == "count":
            count = data["meta"]["count"]
            return f"{count['kind']}:{count['value']}" if "value" in count else None
        found = data.get(name)
        return str(found).lower() if isinstance(found, bool) else found

    def following(self) -> Call | None:
        if "error" in self.seen:
            call = self.seen["error"].get("next_call")
            return Call(call["tool"], call["arguments"]) if call else None
        if self.tool == "read_record_field":
            cursor = self.seen["window"]["next_cursor"]
            record, field = self.seen["record"]["id"], self.seen["field"]["path"]
            arguments = {"id": record, "field_path": field, "cursor": cursor}
            return Call(self.tool, arguments) if cursor else None
        calls = self.seen.get("next", [])
        return Call(calls[0]["tool"], calls[0]["arguments"]) if calls else None

    def cut(self) -> Call | None:
        return _read(self._ladder())

    def _ladder(self) -> list[Json]:
        if self.tool == "search":
            return [e for row in self.seen["results"] for e in row.get("content_ladder", [])]
        if self.tool == "fetch":
            return self.seen["metadata"]["content_ladder"]
        return self.seen["content_ladder"]

    def blob_uri(self) -> str:
        return next(e["uri"] for e in self._ladder() if e["kind"] == "binary")

    def error_code(self) -> str | None:
        return self.seen.get("error", {}).get("code")

    def wait_seconds(self) -> int:
        return self.seen["error"]["retry_after_seconds"]

    def connections(self) -> list[str]:
        rows = self.seen["error"]["available_connections"]
        return [row["connection_id"] for row in sorted(rows, key=lambda r: not r["has_stream"])]

    def streams(self) -> list[str]:
        return [row["name"] for item in self.seen["data"]["connectors"] for row in item["streams"]]

    def unavailable(self) -> list[str]:
        held = self.seen["data"] if "data" in self.seen else self.seen["error"]
        return [row["connection_id"] for row in held["unavailable_connections"]]

    def window(self) -> str:
        return self.seen["window"]["text"]

    def values(self) -> str:
        return json.dumps(self.seen, ensure_ascii=False)

    def schema_of(self, field: str) -> Json:
        return self.seen["data"]["connectors"][0]["streams"][0]["schema"]["properties"][field]

    def other_count(self) -> int:
        return self.seen["data"]["other_count"]

    def group_count(self) -> int:
        return len(self.seen["data"]["groups"])

    def groups(self) -> list[tuple[Any, float]]:
        listed = self.seen["data"]["groups"]
        return [(group["key"], float(group.get("value", group["count"]))) for group in listed]

    def entries(self) -> list[Json]:
        listed = self.seen["data"]["groups"]
        return [{**group, "figure": group.get("value", group["count"])} for group in listed]

    def near(self) -> list[tuple[str, Any, int]]:
        return [(each["field"], each["value"], each["count"]) for each in self.seen.get("near", ())]

    def warnings(self) -> set[str]:
        listed = self.seen.get("warnings") or self.seen["data"]["meta"]["warnings"]
        return {warning["code"] for warning in listed}

    def size_chars(self) -> int:
        return self.seen["field"]["size_chars"]

    def value(self) -> str:
        return str(self.seen["data"]["value"])

    def rows(self) -> list[Json]:
        return [row["data"] for row in records_of(self.seen)]

    def titles(self) -> list[str]:
        return [row["title"] for row in self.seen["results"]]


class Strict(StructuredOnly):
    """A client that validates every result, errors included, before it shows anything."""

    name = "strict"

    def __init__(self, tool: str, arguments: Mapping[str, Any], result: Result) -> None:
        super().__init__(tool, arguments, result)
        schema = published_contract().tools[tool].output_schema
        jsonschema_rs.validator_for(schema).validate(result.structured)


class LinkAverse(View):
    """A host that asks its person about every link."""

    name = "link-averse"

    def __init__(self, tool: str, arguments: Mapping[str, Any], result: Result) -> None:
        super().__init__(tool, arguments, result)
        incomplete = "cut: " in result.text or "binary: " in result.text
        if tool == "read_record_field" and not result.is_error:
            incomplete = not result.structured["window"]["complete"]
        if tool == "fetch" and not result.is_error:
            incomplete = bool(result.structured["metadata"]["content_ladder"])
        assert incomplete or not result.links, f"{tool} sent a link for a complete read"


class SmallWindow(View):
    """A host that shows the first four thousand characters."""

    name = "small-window"

    def __init__(self, tool: str, arguments: Mapping[str, Any], result: Result) -> None:
        super().__init__(tool, arguments, result)
        self.shown = result.text[:window_chars]
        if len(result.text) > window_chars and tool != "fetch":
            self.text = Text(self.shown + self._closing())

    def is_whole(self) -> bool:
        """Whether every record that the first line counts has been seen to its end."""
        counted = int(self.fact("records") or 0)
        return counted <= 1 or "\nnext: " in self.shown or len(self.result.text) <= window_chars

    def _closing(self) -> str:
        """The fence as far as it is seen, so that the grammar still applies."""
        nonce = re.search(r"^BEGIN ([0-9a-f]{12}) ", self.shown, re.MULTILINE)
        return f"\nEND {nonce[1]}" if nonce else ""

    def following(self) -> Call | None:
        """Without the closing lines the first line alone leads on."""
        cursor = self.fact("next_cursor")
        bookmark = self.fact("next_changes_since")
        if cursor:
            return Call(self.tool, {**self.arguments, "cursor": cursor})
        if bookmark:
            rest = {name: value for name, value in self.arguments.items() if name != "cursor"}
            return Call(self.tool, {**rest, "changes_since": bookmark})
        return super().following()

    def values(self) -> str:
        return self.shown


views: tuple[type[View], ...] = (View, StructuredOnly, Strict, LinkAverse, SmallWindow)


def _entry(line: str) -> Json:
    """A line such as `key "U7" label "Ada", "monday" = 5 (records 7)`."""
    found: Json = {}
    rest = f" {line}"
    for word, name in ((" key ", "key"), (" label ", "label"), (" until ", "until"),
                       (", ", "then"), (" label ", "then_label")):  # fmt: skip
        if rest.startswith(word):
            found[name], end = json.JSONDecoder().raw_decode(rest[len(word) :])
            rest = rest[len(word) + end :]
    found["figure"] = rest.removeprefix(" = ").split(" ")[0]
    return found


def _read(ladder: list[Json]) -> Call | None:
    call = next((entry["read"] for entry in ladder if "read" in entry), None)
    return Call(call["tool"], call["arguments"]) if call else None
