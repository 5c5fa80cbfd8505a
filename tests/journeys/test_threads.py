"""A thread of mails, from the mailbox to one read of it, as far as it is granted."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from bench.site import Site
from demo.agent import Agent, over_http
from demo.story import Story
from tests.journeys.test_attachments import Served, granted, run

pytestmark = pytest.mark.anyio
KNOWN = ["id", "thread_id", "sent_at", "subject", "from_name", "from_address"]


def mail(number: int, who: str) -> str:
    answers = f"In-Reply-To: <m{number - 1}@x>\n" if number > 1 else ""
    return (
        f"From - Fri Mar  1 10:00:00 2024\nMessage-ID: <m{number}@x>\nSubject: Bread\n{answers}"
        f"From: {who} <{who.lower()}@x>\nDate: {number:02} Mar 2024 10:00:00 +0000\n\n"
        f"Loaf {number}\n\n"
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("owner")
    site, mailbox = Site(folder), folder / "Inbox"
    mailbox.write_text("".join(mail(n, "Ada" if n % 2 else "Bo") for n in (3, 1, 2)))
    run(site, "import", str(mailbox))
    whole = granted(site, folder, "Whole", [{"name": "messages"}])
    some = granted(site, folder, "Some", [{"name": "messages", "fields": KNOWN}])
    with site.serving():
        yield Served(f"{site.origin}/mcp", whole, some)


async def told(agent: Agent, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return (await agent.ask("Which thread?", tool, arguments)).structured


async def test_a_thread_is_read_in_one_call_as_far_as_it_is_granted(served: Served) -> None:
    for token, lines in (served.whole, ["Loaf 1", "Loaf 2", "Loaf 3"]), (served.names_only, []):
        async with over_http(served.url, token, Story()) as agent:
            page = await told(agent, "query_records", {"stream": "messages", "limit": 1})
            (row,) = page["data"]["data"]
            first = f"{row['connection_id']}/messages:{row['id']}"
            asked = {"id": first, "expand": ["thread"]}
            document = await told(agent, "fetch", asked)
            rest = await told(agent, "fetch", {**asked, "expand_limit": {"thread": 2}})
            thread = rest["metadata"]["expanded"]["thread"]
            assert (len(thread["data"]), thread["has_more"]) == (2, True)
            all_of_it = await told(agent, thread["next"]["tool"], thread["next"]["arguments"])
        found = document["metadata"]["expanded"]["thread"]["data"]
        assert [row["by"] for row in found] == ["Ada", "Bo", "Ada"]
        assert [row["at"][8:10] for row in found] == ["01", "02", "03"]
        assert [row["line"] for row in found if "line" in row] == lines
        assert len(all_of_it["data"]["data"]) == 3
        assert lines or "Loaf" not in str((document, rest, all_of_it))
