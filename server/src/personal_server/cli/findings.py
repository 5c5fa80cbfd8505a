"""Findings of the doctor: one line a check, and under it what mends it."""

from __future__ import annotations

import msgspec
from rich.console import Console
from rich.text import Text

from pdpp_mcp_server.commands.tables import plain

GOOD, WRONG, HINT, SKIPPED = "good", "wrong", "hint", "skipped"
_MARKS = {GOOD: ("✓", "green"), WRONG: ("✗", "red"), HINT: ("!", "yellow"), SKIPPED: ("–", "dim")}


class Finding(msgspec.Struct, frozen=True):
    """One check: what was tried, how it went, what is wrong and how to mend it.

    Shapes: `code` says for programs what was tried, and `fault` which of its faults was found,
        where there are several; both stay when the sentences change.
    """

    code: str
    name: str
    state: str
    detail: str = ""
    mend: str = ""
    fault: str = ""

    def as_json(self) -> dict[str, str]:
        """For programs; empty members are left out."""
        members = {
            "check": self.name,
            "code": self.code,
            "state": self.state,
            "fault": self.fault,
            "said": self.detail,
            "mend": self.mend,
        }
        return {name: value for name, value in members.items() if value}


def judged(code: str, name: str, fits: bool, detail: str, mend: str) -> Finding:
    """Good without words, or wrong with them."""
    return good(code, name) if fits else wrong(code, name, detail, mend)


def good(code: str, name: str, detail: str = "") -> Finding:
    """A check that found nothing wrong."""
    return Finding(code, name, GOOD, detail)


def wrong(code: str, name: str, detail: str, mend: str, fault: str = "") -> Finding:
    """A finding that something is wrong, with what to do about it."""
    return Finding(code, name, WRONG, detail, mend, fault)


def print_finding(finding: Finding, out: Console) -> None:
    """One line, and what mends it."""
    mark, style = _MARKS[finding.state]
    line = Text.assemble((mark, style), " ", plain(finding.name))
    if finding.detail:
        line.append(": ").append_text(plain(finding.detail))
    out.print(line, soft_wrap=True)
    if finding.mend:
        out.print(Text.assemble("    ", plain(finding.mend)), soft_wrap=True)
