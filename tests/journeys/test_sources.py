"""One question for each source, from the export to both faces of the answer over MCP."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.site import Site
from demo.agent import Answer, over_http
from demo.story import Story
from pdpp_sources.common.declaration import REGISTRY
from pdpp_sources.registry import SOURCES
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import as_folder

pytestmark = pytest.mark.anyio
MOST_OF_A_GRANT = 16  # sources, as RFC 9396 requests are bounded


@dataclass(frozen=True, slots=True)
class Question:
    """What an agent is asked, how it asks, and what it must see on either face."""

    source: str
    words: str
    tool: str
    arguments: dict[str, Any]
    answer: tuple[str, ...]


QUESTIONS = (
    Question(
        "mail",
        "Who wrote to me on 14 March?",
        "query_records",
        {"stream": "messages", "filter": {"sent_at": {"gte": "2022-03-14", "lt": "2022-03-15"}}},
        ("Äpfel und Birnen", "Jürgen"),
    ),
    Question(
        "bank",
        "How much came in and went out?",
        "aggregate",
        {"stream": "transactions", "metric": "sum", "field": "amount", "group_by": "direction"},
        ("-1539.36", "2535"),
    ),
    Question(
        "chatgpt", "Why was my loaf flat?", "search", {"query": "heat"}, ("Sourdough", "Too little")
    ),
    Question("claude", "When do I sow beans?", "search", {"query": "frost"}, ("Garden", "12 May")),
    Question(
        "claude",
        "What did the assistant make for my garden?",
        "query_records",
        {"stream": "artifacts", "filter": {"command": "create"}},
        ("Sowing calendar", "May: beans"),
    ),
    Question(
        "slack",
        "What did Ada write in #general?",
        "query_records",
        {"stream": "messages", "filter": {"author_name": "Ada"}},
        ("the plan (https://example.org)",),
    ),
    Question(
        "whatsapp",
        "How many messages did each of us write?",
        "aggregate",
        {"stream": "messages", "metric": "count", "group_by": "author"},
        ("Ann Byron", "Ada", "4"),
    ),
    Question(
        "telegram",
        "What did Ann answer about the recipe?",
        "query_records",
        {"stream": "messages", "filter": {"author": "Ann Byron"}},
        ("Like this {one}?", "7.2"),
    ),
    Question(
        "phone",
        "How long did I talk on the phone?",
        "aggregate",
        {"stream": "calls", "metric": "sum", "field": "duration", "group_by": "direction"},
        ("outgoing", "37"),
    ),
    Question(
        "googlevoice",
        "What was said on my voicemail?",
        "query_records",
        {"stream": "calls", "filter": {"direction": "voicemail"}},
        ("The oven is hot", "2024-01-15"),
    ),
    Question(
        "tracks",
        "How far did I run and ride?",
        "aggregate",
        {"stream": "workouts", "metric": "sum", "field": "distance_meters", "group_by": "kind"},
        ("cycling", "4500", "running"),
    ),
    Question(
        "evernote", "What did I note about kneading?", "search", {"query": "knead"}, ("Bread",)
    ),
    Question(
        "kindle",
        "What did I mark in the Odyssey?",
        "query_records",
        {"stream": "highlights", "filter": {"book": "The Odyssey"}},
        ("ingenious hero", "Which translation?"),
    ),
    Question(
        "meta",
        "What did Bö Adair write to me?",
        "query_records",
        {"stream": "messages", "filter": {"author": "Bö Adair"}},
        ("Crème brûlée", "2024-01-15"),
    ),
    Question(
        "calendar",
        "What is on at the end of January?",
        "query_records",
        {"stream": "agenda", "filter": {"starts_at": {"gte": "2024-01-25", "lt": "2024-02-01"}}},
        ("Caffè, and a very long title", "2024-01-26"),
    ),
    Question(
        "contacts",
        "What is Ada's address?",
        "query_records",
        {"stream": "contacts", "filter": {"display_name": "Ada Lovelace"}},
        ("12 St James's Square", "ada@example.org"),
    ),
    Question(
        "imessage",
        "Who reacted to what I wrote, and how?",
        "aggregate",
        {
            "stream": "reactions",
            "metric": "count",
            "group_by": "reaction",
            "filter": {"is_taken_back": False},
        },
        ("liked", "🍞"),
    ),
    Question(
        "imessage", "What did I say of the starter?", "search", {"query": "doubled"}, ("twice",)
    ),
    Question(
        "apple_health",
        "What was my heart rate on 4 March?",
        "aggregate",
        {
            "stream": "measurements",
            "metric": "max",
            "field": "value",
            "filter": {"kind": "heart_rate"},
        },
        ("63",),
    ),
    Question(
        "apple_health",
        "How far did I run?",
        "aggregate",
        {"stream": "workouts", "metric": "sum", "field": "distance_meters", "group_by": "kind"},
        ("running", "5100"),
    ),
    Question(
        "browser",
        "What did I search for in March?",
        "query_records",
        {"stream": "searches", "filter": {"searched_at": {"gte": "2024-03-01"}}},
        ("rye loaf", "www.example.com"),
    ),
    Question(
        "google",
        "Which videos did I watch in March?",
        "query_records",
        {"stream": "youtube_watches", "filter": {"occurred_at": {"gte": "2024-03-01"}}},
        ("Bread in an hour", "Bakers"),
    ),
    Question(
        "google",
        "Which pictures is Ann Byron on?",
        "search",
        {"query": "Byron"},
        ("loaf.jpg", "2024-03-01"),
    ),
    Question(
        "google",
        "What is still to be done in the kitchen?",
        "query_records",
        {"stream": "tasks", "filter": {"list": "Kitchen", "status": "needsAction"}},
        ("Order flour", "2024-03-05"),
    ),
    Question(
        "google",
        "What does my note on the starter say?",
        "query_records",
        {"stream": "notes", "filter": {"is_trashed": False}},
        ("Feed the starter twice", "Bakery"),
    ),
    Question(
        "google",
        "What did I write below videos in 2023?",
        "query_records",
        {"stream": "youtube_comments", "filter": {"commented_at": {"lt": "2024-01-01"}}},
        ("More salt!",),
    ),
    Question(
        "notes",
        "How often is the starter fed?",
        "search",
        {"query": "twice"},
        ("Sourdough", "Feed it"),
    ),
    Question(
        "table-shopping",
        "What did I spend on each kind?",
        "aggregate",
        {"stream": "shopping", "metric": "sum", "field": "price", "group_by": "kind"},
        ("food", "2", "tool", "12"),
    ),
    Question(
        "mail",
        "When did I last hear from Jürgen?",
        "aggregate",
        {
            "stream": "messages",
            "metric": "max",
            "field": "sent_at",
            "filter": {"from_address": "juergen@example.org"},
        },
        ("2022-03-14T06:30:00Z",),
    ),
    Question("mail", "What was sent to Ann?", "search", {"query": "byron"}, ("Äpfel und Birnen",)),
    Question(
        "bank",
        "How much did I spend on coffee each month?",
        "aggregate",
        {
            "stream": "transactions",
            "metric": "sum",
            "field": "amount_minor",
            "group_by_time": "posted_on",
            "granularity": "month",
            "filter": {"payee": "Coffee"},
        },
        ("-1240",),
    ),
    Question(
        "bank",
        "Whom did I pay how much?",
        "aggregate",
        {"stream": "transactions", "metric": "sum", "field": "amount_minor", "group_by": "payee"},
        ("Coffee",),
    ),
    Question(
        "whatsapp",
        "When did I last talk to Ann?",
        "aggregate",
        {
            "stream": "messages",
            "metric": "max",
            "field": "sent_at",
            "filter": {"author": "Ann Byron"},
        },
        ("2024-01-13T21:06:00Z",),
    ),
    Question(
        "calendar",
        "How long were my meetings each month?",
        "aggregate",
        {
            "stream": "agenda",
            "metric": "sum",
            "field": "minutes",
            "group_by_time": "starts_at",
            "granularity": "month",
        },
        ("270",),
    ),
    Question("calendar", "When do I meet Ann?", "search", {"query": "byron"}, ("Caffè",)),
    Question("notes", "What did I note on baking?", "search", {"query": "baking"}, ("Sourdough",)),
)


@dataclass(frozen=True, slots=True)
class Served:
    """A running server with every source in it, and for each a token that reads it."""

    url: str
    tokens: dict[str, str]
    connections: dict[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("owner")
    site = Site(folder)
    exports = [as_folder(files, folder / "exports" / key) for key, files in SPECIMENS.items()]
    imported = json.loads(run(site, "import", *map(str, exports), "--json"))["imports"]
    keys = {each["connector_key"]: each["connection"]["connection_id"] for each in imported}
    tokens: dict[str, str] = {}
    for some in batched(keys, MOST_OF_A_GRANT):
        tokens |= dict.fromkeys(some, token_for(site, folder / some[0], some))
    with site.serving():
        yield Served(f"{site.origin}/mcp", tokens, keys)


def batched(keys: Iterable[str], most: int) -> list[tuple[str, ...]]:
    """The keys in parts of at most so many."""
    listed = tuple(keys)
    return [listed[at : at + most] for at in range(0, len(listed), most)]


def token_for(site: Site, folder: Path, keys: Sequence[str]) -> str:
    """A token that reads everything of these sources."""
    folder.mkdir()
    request = folder / "request.json"
    request.write_text(json.dumps([asked(key) for key in keys]))
    options = ["--from", str(request), "--yes", "--cache-root", str(folder / "cache")]
    run(site, "grant", "create", "--client", f"Journey {keys[0]}", *options)
    (cached,) = (folder / "cache" / "clients").glob("*.json")
    return json.loads(cached.read_text())["credential"]["access_token"]


def run(site: Site, *arguments: str) -> str:
    """What a command prints; damage in a specimen (65) is meant."""
    done = subprocess.run(
        site.command("pdpp", *arguments), capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 65), done.stderr
    return done.stdout


def asked(key: str) -> dict[str, Any]:
    """A request for everything of a source."""
    return {
        "type": "https://pdpp.dev/data-access",
        "source": {"id": REGISTRY + key},
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous",
        "streams": [{"name": "*"}],
    }


def seen(answer: Answer, face: str) -> str:
    """All that a host shows of an answer if it shows one face only."""
    return answer.text if face == "text" else json.dumps(answer.structured, ensure_ascii=False)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each.source)
async def test_an_agent_finds_the_answer_on_either_face(served: Served, question: Question) -> None:
    connection = {"connection_id": served.connections[question.source]}
    token = served.tokens[question.source]
    async with over_http(served.url, token, Story()) as agent:
        offered = await agent.ask("What is there?", "schema", connection)
        answer = await agent.ask(question.words, question.tool, question.arguments | connection)
    for face in ("text", "structured"):
        assert connection["connection_id"] in seen(offered, face), face
        assert question.arguments.get("stream", "") in seen(offered, face), face
        assert [each for each in question.answer if each not in seen(answer, face)] == [], face


def test_there_is_a_question_for_every_source() -> None:
    asked_of = {question.source.partition("-")[0] for question in QUESTIONS}
    assert asked_of == {source.connector_key for source in SOURCES}
