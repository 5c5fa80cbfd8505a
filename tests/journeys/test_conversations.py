"""A chat, from its export to a hit that says what was said before and after it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from bench.clients import HostedCaller, RestCaller
from bench.site import Site
from tests.journeys.test_attachments import run

LINES = ("Shall we bake?", "Yes, rye then", "Where is the quince jam", "On the shelf " * 20, "Ah")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    folder = tmp_path_factory.mktemp("owner")
    site, chat = Site(folder), folder / "WhatsApp Chat - Ann"
    chat.mkdir()
    said = (f"[13/01/24, 21:0{n}:00] Ada: {line}\n" for n, line in enumerate(LINES))
    (chat / "_chat.txt").write_text("".join(said), encoding="utf-8")
    run(site, "import", str(chat))
    with site.serving():
        yield site


def asked(site: Site, name: str, *selection: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """The hit for a word of the third message, and both faces of the tool's answer."""
    token, _ = site.grant(name, "--source", "whatsapp", *selection)
    rest, hosted = RestCaller(site.origin, token), HostedCaller(site.origin, token)
    [hit] = rest.get("/v1/search", [("q", "quince")])["data"]
    result = hosted.call("search", {"query": "quince"})
    rest.close()
    hosted.close()
    return hit, result["content"][0]["text"], result["structuredContent"]


def test_a_hit_in_a_chat_says_how_its_neighbours_begin(site: Site) -> None:
    hit, text, structured = asked(site, "whole")
    context = hit["context"]
    assert [context[side]["text"] for side in ("before", "after")] == [LINES[1], LINES[3][:80]]
    assert f"\nbefore: {LINES[1]}\n" in text
    assert f"\nafter: {LINES[3][:80].strip()}\n" in text
    assert structured["data"]["data"][0]["context"] == context


@pytest.mark.parametrize(
    ("name", "selection", "told"),
    [
        ("since", ("--since", "2024-01-13T21:02:00Z"), {"after"}),
        ("until", ("--until", "2024-01-13T21:03:00Z"), {"before"}),
    ],
)
def test_what_is_not_granted_of_a_chat_is_no_neighbour(
    site: Site, name: str, selection: tuple[str, ...], told: set[str]
) -> None:
    hit, text, structured = asked(site, name, *selection)
    assert set(hit["context"]) == told
    assert structured["data"]["data"][0]["context"] == hit["context"]
    assert {side for side in ("before", "after") if f"\n{side}: " in text} == told
