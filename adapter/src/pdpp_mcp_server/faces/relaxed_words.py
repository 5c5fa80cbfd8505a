"""What a search says where too few records hold all words: first how many do, then which words.

Rule: a server's words of `relaxed` are the caller's own, so that they may stand outside the fence;
near words, which records say, never do (`near_values`).
Source: docs/contract/mcp-adapter.md 10.4.
"""

from __future__ import annotations

from collections.abc import Iterable

from pdpp_mcp_server import contract
from pdpp_mcp_server.faces.text import fact
from pdpp_mcp_server.rs_client.answers import meta_of
from pdpp_mcp_server.rs_client.json_values import Json, as_count, as_list, as_object, as_text
from pdpp_mcp_server.safe_text import one_line

HOLDS = "holds: "


def relaxed_facts(body: Json) -> list[str]:
    """Of the head line: how many hits hold all words, and what the others hold."""
    relaxed = as_object(meta_of(body).get("relaxed"))
    words, exact = as_count(relaxed.get("words")), as_count(relaxed.get("exact_count"))
    if words is None or exact is None:
        return []
    if not as_list(body.get("data")):
        return ["nothing matches"]
    least = as_count(relaxed.get("least"))
    is_spelled = bool(as_list(relaxed.get("spelled")))
    others = f"all words, {'some spelled otherwise' if is_spelled else 'taken apart'}"
    if least is not None:
        others = f"at least {least} of {words} words"
    return [fact("with_all_words", str(exact)), fact("others", others)]


def relaxed_notes(body: Json, *, is_narrowed: bool = False) -> list[str]:
    """Lines that name the words which nothing holds, and those that were taken for others.

    `is_narrowed`: some streams or connections alone were searched.
    """
    relaxed = as_object(meta_of(body).get("relaxed"))
    absent, spelled = _words(relaxed.get("absent")), _words(relaxed.get("spelled"))
    where = (
        "in no searched field of these streams"
        if is_narrowed
        else "in no searched field that you may see"
    )
    lines = [f"absent: {absent} ({where})"] if absent else []
    return (
        [*lines, f"respelled: {spelled} (near words say what was searched instead)"]
        if spelled
        else lines
    )


def relaxed_sentence(body: Json, *, is_narrowed: bool = False) -> str:
    """The same as one text, for a face that is JSON."""
    return "; ".join([*relaxed_facts(body), *relaxed_notes(body, is_narrowed=is_narrowed)])


def held_as_written(lines: Iterable[str], body: Json) -> list[str]:
    """The lines of hits, without words that were searched in another spelling: none holds those."""
    spelled = set(as_list(as_object(meta_of(body).get("relaxed")).get("spelled")))
    if not spelled:
        return list(lines)
    return [each for line in lines if (each := _as_written(line, spelled))]


def _as_written(line: str, spelled: set[object]) -> str:
    if not line.startswith(HOLDS):
        return line
    words = [word for word in line.removeprefix(HOLDS).split(", ") if word not in spelled]
    return HOLDS + ", ".join(words) if words else ""


def held_line(hit: Json) -> list[str]:
    """Which of the caller's words a hit holds, where it need not hold all."""
    matched = _words(hit.get("matched_words"))
    return [f"{HOLDS}{matched}"] if matched else []


def _words(found: object) -> str:
    words = ", ".join(text for each in as_list(found) if (text := as_text(each)))
    return one_line(words, contract.LABEL)
