"""A reference to the contract or to a decision leads somewhere."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("kernel", "sources", "adapter", "server", "tests", "bench", "demo", "pages", "release")
CONTRACT = ROOT / "docs" / "contract"

END_OF_LINE = re.compile(r"[ \t]*\n[ \t]*(?:# )?")
SECTIONS = r"\d+(?:\.\d+)*(?:(?:, and |, | and | to )\d+(?:\.\d+)*(?![\w-]))*"
DECISIONS = r"[CP]\d+(?:(?:, | and | to )[CP]\d+)*"
REFERENCE = re.compile(rf"docs/((?:contract/)?[a-z-]+\.md)(?: ({SECTIONS}|{DECISIONS}))?")
HEADING = re.compile(r"^#{2,6} (\d+(?:\.\d+)*)\.? \S", re.MULTILINE)
ROW = re.compile(r"^\| ([CP]\d+) \|", re.MULTILINE)
OLD = re.compile(
    r"\b(?:RS|AS|MCP adapter|[Rr]esource[- ]server|[Aa]uthorization[- ]server) "
    r"contract\b|\bdecisions? C\d"
)
# how the pages of the contract point at each other, at decisions and at bound requirements
WITHIN = re.compile(rf"(?:\b(RS|AS|MCP) |(§)|\b([Ss]ections?) )({SECTIONS})")
LINKED = re.compile(rf"\]\(([a-z-]+\.md)\) ({SECTIONS})")
NUMBERED = re.compile(r"(?<![\w.&-])([CP][1-9]\d*|R\d\.\d+)(?![\w-]|\.\d)")
OF_SHORT = {
    "RS": "resource-server.md",
    "AS": "authorization-server.md",
    "MCP": "mcp-adapter.md",
}
ELSEWHERE = re.compile(r"(?:RFC \d+|core)[^.;|]{0,12}$")


def readers() -> Iterator[Path]:
    """Every text that may refer to the contract, but for the contract itself and this module."""
    for room in ROOMS:
        yield from (p for p in sorted((ROOT / room).rglob("*.py")) if p != Path(__file__).resolve())
    yield from sorted(ROOT.glob("*.md"))
    yield from sorted(ROOT.glob("*/README.md"))
    yield from sorted(ROOT.glob("server/src/personal_server/*/README.md"))
    yield from sorted((ROOT / "docs").glob("*.md"))


@cache
def places(page: str) -> frozenset[str]:
    """What can be referred to in a page under docs; nothing if there is no such page."""
    path = ROOT / "docs" / page
    if not path.is_file():
        return frozenset()
    text = path.read_text(encoding="utf-8")
    return frozenset([*HEADING.findall(text), *ROW.findall(text)])


def numbers_in(listed: str) -> list[str]:
    return re.split(r", and |, | and | to ", listed)


def wrong_references(text: str) -> list[str]:
    """References of a text that lead nowhere; one may be broken at the end of a line."""
    found: list[str] = []
    for match in REFERENCE.finditer(END_OF_LINE.sub(" ", text)):
        page, listed = match.groups()
        if not page.startswith("contract/") and listed is None:
            continue
        if not places(page):
            found.append(match[0])
            continue
        missing = [n for n in numbers_in(listed or "") if n and n not in places(page)]
        found.extend(f"docs/{page} {number}" for number in missing)
    return found


def wrong_within(page: str, text: str) -> list[str]:
    """Pointers of a page of the contract that lead nowhere."""
    rows = (ROOT / "tests" / "requirements" / "requirements.tsv").read_text(encoding="utf-8")
    known = {f"R{line.split(chr(9))[0]}" for line in rows.splitlines()[1:]}
    known |= places("decisions.md")
    flat = END_OF_LINE.sub(" ", text)
    found = [m[1] for m in NUMBERED.finditer(flat) if m[1] not in known]
    for match in LINKED.finditer(flat):
        missing = [n for n in numbers_in(match[2]) if n not in places(f"contract/{match[1]}")]
        found.extend(f"{match[1]} {number}" for number in missing)
    for match in WITHIN.finditer(flat):
        if ELSEWHERE.search(flat[max(0, match.start() - 24) : match.end() - len(match[4])]):
            continue
        target = OF_SHORT.get(match[1] or "", page)
        missing = [n for n in numbers_in(match[4]) if n not in places(f"contract/{target}")]
        found.extend(f"{target} {number}" for number in missing)
    return found


def guilty(found: Iterator[tuple[Path, list[str]]]) -> dict[str, list[str]]:
    return {path.relative_to(ROOT).as_posix(): wrong for path, wrong in found if wrong}


def test_each_reference_leads_to_a_heading_or_a_row() -> None:
    texts = ((path, path.read_text(encoding="utf-8")) for path in readers())
    assert guilty((path, wrong_references(text)) for path, text in texts) == {}


def test_the_code_refers_to_every_page_of_the_contract() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in readers())
    named = {match[1] for match in REFERENCE.finditer(text)}
    assert {f"contract/{page.name}" for page in CONTRACT.glob("*.md")} <= named


def test_the_pages_of_the_contract_point_at_what_exists() -> None:
    texts = ((path, path.read_text(encoding="utf-8")) for path in sorted(CONTRACT.glob("*.md")))
    assert guilty((path, wrong_within(path.name, text)) for path, text in texts) == {}


def test_no_reference_has_the_old_wording() -> None:
    texts = ((p, END_OF_LINE.sub(" ", p.read_text(encoding="utf-8"))) for p in readers())
    assert guilty((path, OLD.findall(text)) for path, text in texts) == {}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Source: docs/contract/resource-server.md 9.2.", []),
        ("Source: docs/contract/resource-server.md 4.3, 7.4 and 12.", []),
        ("Source: docs/contract/mcp-adapter.md 10\n    to 12. At most 4,000.", []),
        ("# docs/contract/mcp-adapter.md\n# 5.1, 5.2; docs/decisions.md C2, C21.", []),
        ("as docs/contract/authorization-server.md says", []),
        ("see docs/settings.md", []),
        ("docs/contract/resource-server.md 99", ["docs/contract/resource-server.md 99"]),
        ("docs/contract/resource-server.md 9.2, 9.9", ["docs/contract/resource-server.md 9.9"]),
        ("docs/contract/mcp-adapter.md\n  1 and 77.7", ["docs/contract/mcp-adapter.md 77.7"]),
        ("docs/contract/nowhere.md 1", ["docs/contract/nowhere.md 1"]),
        ("docs/contract/nowhere.md says", ["docs/contract/nowhere.md"]),
        ("docs/decisions.md C3, C999", ["docs/decisions.md C999"]),
        ("docs/contract/resource-server.md C3", ["docs/contract/resource-server.md C3"]),
    ],
)
def test_a_made_up_reference_is_found(text: str, wrong: list[str]) -> None:
    assert wrong_references(text) == wrong


@pytest.mark.parametrize(
    "pointer", ["RS 4.99", "AS 99", "§77", "section 20.7", "C999", "R9.99", "[a](nowhere.md) 1"]
)
def test_a_made_up_pointer_of_a_page_is_found(pointer: str) -> None:
    assert wrong_within("mcp-adapter.md", f"As {pointer} says.") != []


@pytest.mark.parametrize(
    "text",
    ["Source: RS contract 9.2.", "Source: MCP adapter\ncontract 2.2.", "Source: decision C6."],
)
def test_the_old_wording_is_found(text: str) -> None:
    assert OLD.search(END_OF_LINE.sub(" ", text)) is not None
