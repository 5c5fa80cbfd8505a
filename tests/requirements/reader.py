"""A reader that sees text only, and finds its way by the grammar of the text face."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


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
        return [m[1] for line in self.fenced if (m := re.fullmatch(r"\[\d+\] (.*)", line))]

    @property
    def sub_ids(self) -> list[str]:
        return [m[1] for line in self.fenced if (m := re.fullmatch(r"\[\d+\.\d+\] (.*)", line))]

    @property
    def records(self) -> list[Json]:
        return [json.loads(line) for line in self.fenced if line.startswith("{")]

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

    @property
    def window(self) -> str:
        return "\n".join(self.fenced)
