"""What the doctor finds: one line each, and how to mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from personal_server.cli.tables import plain
from personal_server.rs_client.credentials import CredentialError

GOOD, WRONG, HINT, SKIPPED = "good", "wrong", "hint", "skipped"
_MARKS = {GOOD: ("✓", "green"), WRONG: ("✗", "red"), HINT: ("!", "yellow"), SKIPPED: ("–", "dim")}


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was tried, how it went, what is wrong and how to mend it."""

    name: str
    state: str
    said: str = ""
    mend: str = ""

    def as_json(self) -> dict[str, str]:
        """For programs; empty members are left out."""
        members = {"check": self.name, "state": self.state, "said": self.said, "mend": self.mend}
        return {name: value for name, value in members.items() if value}


Check = Callable[[], Iterator[Finding]]


def good(name: str, said: str = "") -> Finding:
    """As it should be."""
    return Finding(name, GOOD, said)


def wrong(name: str, said: str, mend: str) -> Finding:
    """Not as it should be."""
    return Finding(name, WRONG, said, mend)


def judged(name: str, fits: bool, said: str, mend: str) -> Finding:
    """Good without words, or wrong with them."""
    return good(name) if fits else wrong(name, said, mend)


def gather(name: str, check: Check) -> list[Finding]:
    """The findings of a check; a server that fails on the way is one of them."""
    findings: list[Finding] = []
    try:
        findings.extend(check())
    except CredentialError as error:
        findings.append(wrong(name, error.message, error.next_step))
    return findings


def print_finding(finding: Finding, out: Console) -> None:
    """One line, and what mends it."""
    mark, style = _MARKS[finding.state]
    line = Text.assemble((mark, style), " ", plain(finding.name))
    if finding.said:
        line.append(": ").append_text(plain(finding.said))
    out.print(line, soft_wrap=True)
    if finding.mend:
        out.print(Text.assemble("    ", plain(finding.mend)), soft_wrap=True)
