"""What an attached file says, from the mailbox to both faces, as far as it is granted."""

from __future__ import annotations

import json
import subprocess
from base64 import b64encode
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.site import Site
from demo.agent import over_http
from demo.story import Story
from pdpp_sources.common.declaration import REGISTRY
from sources.tests.specimens.documents import DOCX

pytestmark = pytest.mark.anyio
MAIL = (
    b"From - Fri Mar  1 10:00:00 2024\nMessage-ID: <m@x>\nSubject: The rooms\nFrom: ann@x\n"
    b"Date: 01 Mar 2024 10:00:00 +0000\n"
    b'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/plain\n\nsee file\n'
    b'--b\nContent-Type: application/octet-stream; name="lease.docx"\n'
    b"Content-Transfer-Encoding: base64\n\n" + b64encode(DOCX) + b"\n--b--\n\n"
)
ALL = {"name": "attachments"}
NAMES = {"name": "attachments", "fields": ["id", "message_id", "filename", "text_state"]}


@dataclass(frozen=True, slots=True)
class Served:
    """A running server with that mail, and a token for each grant."""

    url: str
    whole: str
    names_only: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("owner")
    site, mailbox = Site(folder), folder / "Inbox"
    mailbox.write_bytes(MAIL)
    run(site, "import", str(mailbox))
    whole = granted(site, folder, "Whole", [{"name": "messages"}, ALL])
    names_only = granted(site, folder, "Names", [NAMES])
    with site.serving():
        yield Served(f"{site.origin}/mcp", whole, names_only)


def granted(site: Site, folder: Path, client: str, streams: list[dict[str, Any]]) -> str:
    """A token for these streams."""
    request, cache = folder / f"{client}.json", folder / client
    wanted = {
        "type": "https://pdpp.dev/data-access",
        "source": {"id": REGISTRY + "mail"},
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous",
        "streams": streams,
    }
    request.write_text(json.dumps([wanted]))
    options = ["--from", str(request), "--yes", "--cache-root", str(cache)]
    run(site, "grant", "create", "--client", client, *options)
    (cached,) = (cache / "clients").glob("*.json")
    return json.loads(cached.read_text())["credential"]["access_token"]


def run(site: Site, *arguments: str) -> None:
    done = subprocess.run(
        site.command("pdpp", *arguments), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


async def test_a_hit_in_a_file_names_it_and_leads_on_into_its_text(served: Served) -> None:
    async with over_http(served.url, served.whole, Story()) as agent:
        found = await agent.ask("Which bakery?", "search", {"query": "bakery"})
        (hit,) = found.structured["results"]
        assert "/attachments:" in hit["id"]
        assert hit["title"] == "lease.docx"
        assert "title: lease.docx\n" in found.text
        assert f"\nparent: {hit['parent']}\n" in found.text
        place = {"id": hit["id"], "field_path": "text", "limit_chars": 100}
        window = await agent.ask("What does it say?", "read_record_field", place)
        assert "Rent\\t800" in json.dumps(window.structured)
        assert "Signed" in window.text
        held = await agent.ask("Which message?", "fetch", {"id": hit["id"]})
        fields = held.structured["metadata"]["fields"]
        assert (fields["filename"], fields["subject"]) == ("lease.docx", "The rooms")
        assert hit["parent"].endswith(f"messages:{fields['message_id']}")
        whole = await agent.ask("What does it say itself?", "fetch", {"id": hit["parent"]})
        assert (whole.structured["title"], whole.structured["text"]) == ("The rooms", "see file")


async def test_its_text_is_not_searched_where_it_is_not_granted(served: Served) -> None:
    async with over_http(served.url, served.names_only, Story()) as agent:
        found = await agent.ask("Which bakery?", "search", {"query": "bakery"})
        assert found.structured["results"] == []
        listed = await agent.ask("Which files?", "query_records", {"stream": "attachments"})
        assert "lease.docx" in listed.text
        assert "bakery" not in json.dumps([listed.text, listed.structured])
