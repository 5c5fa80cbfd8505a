"""Sessions of generated calls: plausible, odd and broken ones, and what earlier answers offered."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from adapter.tests.legality import calls_in, insist_on_legal
from adapter.tests.reader import ids_of
from pdpp_mcp_server.calls import (
    AdapterOptions,
    LinkRule,
    Outcome,
    ToolCall,
    none_known,
    those_of_this_program,
)
from pdpp_mcp_server.contract import ResultBudget, published_contract
from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.resources import read_resource
from pdpp_mcp_server.rs_client.json_values import as_object, is_list, is_object
from pdpp_mcp_server.server_offer import personal_data
from pdpp_mcp_server.tool_runs import ClientRequest, draw_nonce, guarded
from tests.requirements.checks import check
from tests.requirements.hostile_port import HostilePort

Json = dict[str, Any]
origin = "https://me.example"
most_reads = {"schema": 2, "query_records": 5, "aggregate": 3, "search": 3, "fetch": 3}
rules: list[LinkRule] = ["auto", "always", "never"]
odd: list[Any] = [
    "", " ", "x" * 2_001, "x" * 9_000, "5", -1, 0, 1, 1.5, 1e300, 10**30, float("nan"), None, True,
    [], {}, [""], ["a", 1], {"a": []}, {"": 1}, {"a[": 1}, "\u202e", "a\nb", "\ud800", "..", "a/b",
]  # fmt: skip
plausible: dict[str, list[Any]] = {
    "id": ["cin_a/messages:m1", "messages:m1", "cin_a/messages:a b", "a//b", "x"],
    "stream": ["messages", "threads", "stream 1", "IGNORE"],
    "connection_id": ["cin_a", "cin_b", "cin_" + "z" * 300],
    "record_id": ["m1", "a/b", "..", "~b64.x", "k" * 900],
    "limit": [1, 5, 25, 100],
    "as": ["image", "text"],
    "cursor": ["c1", "c" * 4_000, 'c u;r|s"or', "4096"],
    "fields": [["body"], ["subject", "body"], [f"f{n}" for n in range(100)]],
    "view": ["summary"],
    "filter": [{"a": 1}, {"a": {"gte": 1, "lt": 2}}, {"a": ""}, {"a": True}, "a=1", "filter[a]=1",
               {"a": {"in": ["b", 2, True]}}, {"a": {"ne": "b"}}, {"a": {"exists": False}},
               {"a": {"contains": "b", "starts_with": "c"}}, {"a": {"in": []}}, {"a": {"in": "b"}},
               {"a": {"exists": "no"}}, {"a": {"contains": ""}}, {"a": {"in": list(range(101))}},
               '{"a":1}', {}, {"a": None}, {"a": {"between": 1}}, {f"f{n}": n for n in range(33)}],
    "sort": ["-sent_at", "sent_at", "-key", "value"],
    "order": ["asc", "desc"],
    "count": ["none", "estimated", "exact"],
    "expand": [["attachments"], ["attachments", "owner"], ["a[b"]],
    "expand_limit": [{"attachments": 3}, {"other": 1}, {"attachments": 0}],
    "changes_since": ["beginning", "b1", "now", "2026-01-01"],
    "since": ["2026-01-01", "2026-01-01T10:00:00Z", "yesterday"],
    "until": ["2026-02-01", "x" * 300],
    "metric": ["count", "sum", "min", "max", "count_distinct", "avg", "median", "p95"],
    "field": ["amount", "title"],
    "group_by": ["title", "connection_id"],
    "then_by": ["title", "status"],
    "group_by_time": ["sent_at"],
    "granularity": ["day", "month", "hour_of_day", "weekday"],
    "bin": [0, 5, 0.25, 1e300, 10**20, -1, "5"],
    "across": ["connections", "sources"],
    "time_zone": ["UTC", "Europe/Berlin"],
    "query": ["words", '"a phrase"', "  ", "\U0001f6eb"],
    "q": ["words", "other"],
    "exact": [True, False, "yes", 1],
    "mode": ["lexical", "semantic", "hybrid"],
    "streams": [["messages"], ["messages", "threads"]],
    "detail": ["full", "compact"],
    "field_path": ["body", "photo", "meta", "f" * 300],
    "offset_chars": [0, 3, 10**9],
    "limit_chars": [1, 4_096, 16_384, 16_385],
    "before_chars": [0, 100],
    "after_chars": [0, 100],
}  # fmt: skip
grouping = (
    *("group_by", "then_by", "group_by_time", "granularity", "time_zone", "bin", "sort"),
    "across",
)
groupings: list[Json] = [
    {"metric": "count", "group_by": "title"},
    {"metric": "sum", "field": "amount", "group_by": "title"},
    {"metric": "max", "field": "title"},
    {"metric": "count", "group_by_time": "sent_at", "granularity": "month"},
    {
        "metric": "avg",
        "field": "amount",
        "group_by": "title",
        "then_by": "status",
        "sort": "-value",
    },
    {"metric": "median", "field": "amount", "group_by": "amount", "bin": 2.5},
    {"metric": "count", "group_by": "title", "group_by_time": "sent_at", "granularity": "weekday"},
    {"metric": "count", "query": "words", "across": "connections", "group_by": "connection_id"},
]
often = {"id", "field_path", "limit", "filter", "connection_id"}


@dataclass(slots=True)
class Tally:
    """What happened in a run."""

    calls: int = 0
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    followed: Counter[str] = field(default_factory=Counter[str])
    text_chars: Counter[str] = field(default_factory=Counter[str])
    structured_chars: Counter[str] = field(default_factory=Counter[str])
    refits: Counter[str] = field(default_factory=Counter[str])
    cuts: Counter[str] = field(default_factory=Counter[str])
    resources: Counter[str] = field(default_factory=Counter[str])

    def note(self, tool: str, outcome: Outcome, sizes: tuple[int, int]) -> None:
        """Count one result."""
        self.calls += 1
        code = outcome.structured["error"]["code"][:40] if outcome.is_error else "ok"
        self.outcomes[tool, code] += 1
        self.text_chars[tool] = max(self.text_chars[tool], sizes[0])
        self.structured_chars[tool] = max(self.structured_chars[tool], sizes[1])
        self.refits[tool] += outcome.page_reads > 1
        self.cuts[tool] += any(True for _ in ladders(outcome.structured))

    def table(self) -> str:
        """The run, one line a tool, then the refusals by code."""
        shown = "{:<18}{:>7}{:>7}{:>9}{:>10}{:>8}{:>7}{:>7}"
        titles = ("tool", "calls", "ok", "refused", "followed", "refits", "cuts", "codes")
        lines = [shown.format(*titles) + "   longest text / structure"]
        for tool in personal_data.tools:
            codes = {code: n for (name, code), n in self.outcomes.items() if name == tool}
            calls, fine = sum(codes.values()), codes.get("ok", 0)
            numbers = (self.followed[tool], self.refits[tool], self.cuts[tool], len(codes))
            longest = f"{self.text_chars[tool]} / {self.structured_chars[tool]}"
            lines.append(shown.format(tool, calls, fine, calls - fine, *numbers) + f"   {longest}")
        refused: Counter[str] = Counter()
        for (_, code), number in self.outcomes.items():
            refused[code] += number
        lines.append("by code: " + ", ".join(f"{c} {n}" for c, n in refused.most_common()))
        lines.append("resources: " + ", ".join(f"{c} {n}" for c, n in self.resources.most_common()))
        lines.append(
            f"{self.calls:,} calls: 0 over the ceiling, 0 untyped errors, 0 invalid, 0 unequal,"
            " 0 with record text outside its place, 0 offered calls that are not legal"
        )
        return "\n".join(lines)


@dataclass(slots=True)
class Session:
    """One client: what answers offer (calls, cursors, ids, addresses) comes back in later calls."""

    seed: int
    tally: Tally
    offers: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])
    seen: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    uris: list[str] = field(default_factory=list[str])

    async def run(self, count: int) -> None:
        """Make calls, one after the other."""
        draw = random.Random(self.seed)
        for _ in range(count):
            await self.step(draw)

    async def step(self, draw: random.Random) -> None:
        """One call, and now and then a resource that an answer named."""
        port = HostilePort(draw)
        offered = bool(self.offers) and draw.random() < 0.4
        tool, arguments = draw.choice(self.offers) if offered else self.made(draw)
        rule = draw.choice(rules)
        openai = draw.random() < 0.2
        capabilities = those_of_this_program if draw.random() < 0.7 else none_known
        budget = ResultBudget(draw.choice([20_000, 20_000, 60_000, 200_000]))
        options = AdapterOptions(rule)
        call = ToolCall(tool, port, origin, draw_nonce, openai, options, capabilities, budget)
        outcome = await guarded(personal_data.tools[tool], call, arguments, _caller(port))
        sizes = check(call, outcome)
        assert len(port.paths) <= most_reads.get(tool, 1), (tool, port.paths)
        if offered:
            self.tally.followed[tool] += 1
        self.tally.note(tool, outcome, sizes)
        self.remember(outcome)
        if self.uris and draw.random() < 0.1:
            await self.read(draw, call)

    def made(self, draw: random.Random) -> tuple[str, Any]:
        """A call of our own: mostly plausible, one argument in ten odd."""
        tool = draw.choice(list(personal_data.tools))
        listed = published_contract().tools[tool]
        chosen: Json = {}
        if draw.random() < 0.02:
            return tool, draw.choice([None, chosen])
        for name in listed.properties:
            wanted = name in listed.required or draw.random() < (0.3 if name in often else 0.12)
            if wanted and draw.random() < 0.97:
                chosen[name] = self.value(draw, name)
        if tool == "aggregate" and draw.random() < 0.7:
            kept = {name: value for name, value in chosen.items() if name not in grouping}
            chosen = {**kept, **draw.choice(groupings)}
        if draw.random() < 0.03:
            chosen[draw.choice(["connector_instance_id", "streem", "\u202e", ""])] = "x"
        return tool, chosen

    def value(self, draw: random.Random, name: str) -> Any:
        """What stands for one argument."""
        chance = draw.random()
        if chance < 0.08:
            return draw.choice(odd)
        known = self.seen.get(name, [])
        return draw.choice(known if known and chance < 0.5 else plausible[name])

    def remember(self, outcome: Outcome) -> None:
        """Keep what a reader of this answer could use next."""
        structured = outcome.structured
        for call in calls_in(structured):
            insist_on_legal(call)
            self.offers.append((call["tool"], call["arguments"]))
            for name, value in call["arguments"].items():
                self.seen.setdefault(name, []).append(value)
        for entry in ladders(structured):
            self.uris += [entry["uri"]] if "uri" in entry else []
        for row in structured.get("results", []):
            self.seen.setdefault("id", []).append(row["id"])
        if "record_ids" in structured or "id_prefix" in structured.get("page", {}):
            self.seen.setdefault("id", []).extend(ids_of(structured))
        cursor = as_object(structured.get("window")).get("next_cursor")
        if cursor:
            self.seen.setdefault("cursor", []).append(cursor)
        del self.offers[:-40], self.uris[:-40]
        for values in self.seen.values():
            del values[:-40]

    async def read(self, draw: random.Random, call: ToolCall) -> None:
        """A resource is its contents or a typed refusal."""
        uri = draw.choice(self.uris)
        code = "ok"
        try:
            found = await read_resource(call, uri)
        except ToolError as error:
            code = error.code[:40]
        else:
            assert all(content.untrusted for content in found.contents)
        assert code != "invalid_id", uri
        self.tally.resources[code] += 1


def _caller(port: HostilePort) -> ClientRequest:
    def open_port(tool: str) -> HostilePort:
        return port

    return ClientRequest(open_port, origin, "req_fuzz")


def ladders(value: Any) -> Iterator[Json]:
    """Every ladder entry of a result."""
    if is_object(value):
        for name, item in value.items():
            if name == "content_ladder" and is_list(item):
                yield from item
            elif name in {"metadata", "results"}:
                yield from ladders(item)
    elif is_list(value):
        for item in value:
            yield from ladders(item)
