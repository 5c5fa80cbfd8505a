"""The main job with real processes: a mailbox in, a grant, both doors, more mail, an end."""

import json
import os
import signal
import subprocess
import sysconfig
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from tests.ports import free_port
from tests.processes import started, stopped
from tests.secrecy.plugin import WATCH

BIN = Path(sysconfig.get_path("scripts"))
SELECTION = ("--source", "mail", "--stream", "messages:id,subject,sent_at,body")
TOOLS = ["schema", "query_records", "aggregate", "search", "fetch", "read_record_field"]


class Home:
    """One person's machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / ".pdpp"
        port = free_port()
        self.origin = f"http://127.0.0.1:{port}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PDPP_")}  # noqa: TID251 (a child's environment)
        self.environ: Mapping[str, str] = kept | {
            "PDPP_DATA_DIR": str(folder / "data"),
            "PDPP_BIND": f"127.0.0.1:{port}",
            "PDPP_WORKERS": "1",
        }

    def pdpp(self, *arguments: str, code: int = 0) -> Any:
        done = subprocess.run(
            [str(BIN / "pdpp"), *arguments, "--json"],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    def mailbox(self, *subjects: str) -> Path:
        path = self.folder / f"{len(subjects)}.mbox"
        with path.open("wb") as file:
            for number, subject in enumerate(subjects):
                message = EmailMessage()
                message["Subject"], message["From"] = subject, "Ada <ada@example.org>"
                message["To"] = "hidden-recipient@example.org"
                message["Date"] = f"Mon, 0{number + 1} Jun 2026 10:00:00 +0000"
                message["Message-ID"] = f"<{number}@example.org>"
                message.set_content(f"{subject}: walked home in heavy rain. " * 300)
                file.write(b"From ada Mon Jun  1 10:00:00 2026\n" + message.as_bytes() + b"\n")
        return path

    @property
    def token(self) -> str:
        [file] = (self.cache / "clients").glob("*.json")
        return json.loads(file.read_text(encoding="utf-8"))["credential"]["access_token"]

    def get(self, path: str) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx2.get(f"{self.origin}{path}", headers=headers)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def served(home: Home) -> Generator[Home]:
    with furnished(home):
        yield home


@pytest.fixture(scope="module")
def only_read(tmp_path_factory: pytest.TempPathFactory) -> Generator[Home]:
    """One for all that change nothing in it."""
    home = Home(tmp_path_factory.mktemp("read"))
    with furnished(home):
        yield home


@contextmanager
def furnished(home: Home) -> Generator[None]:
    """A mailbox is in, an agent has a token, and the server listens."""
    home.pdpp("import", str(home.mailbox("Umbrella", "Harvest")), "--connection", "Home")
    home.pdpp(
        "grant", "create", "--client", "Agent", *SELECTION, "--cache-root", str(home.cache), "--yes"
    )
    process = started(
        [str(BIN / "pdpp"), "serve"], env=home.environ, stderr=subprocess.PIPE, text=True
    )
    for line in process.stderr or ():
        if "Ctrl-C" in line:
            break
    try:
        yield
    finally:
        WATCH.log(stopped(process, signal.SIGINT), "standard error of pdpp serve")


def structured(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def read_everything(client: Client) -> None:
    """Discover, search, fetch, read on, count; and one attempt at what was left out."""
    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
    [connector] = structured(await client.call_tool("schema", {}))["data"]["connectors"]
    assert connector["connector_key"] == "mail"
    found = structured(await client.call_tool("search", {"query": "umbrella rain"}))
    [hit] = found["results"]
    document = structured(await client.call_tool("fetch", {"id": hit["id"]}))
    assert document["title"] == "Umbrella"
    assert document["text"].startswith("Umbrella: walked home")
    window: dict[str, Any] = {"id": hit["id"], "field_path": "body", "limit_chars": 5_000}
    parts: list[str] = []
    while True:
        part = structured(await client.call_tool("read_record_field", window))["window"]
        parts.append(part["text"])
        if not part.get("next_cursor"):
            break
        window = {"id": hit["id"], "field_path": "body", "cursor": part["next_cursor"]}
    assert "".join(parts).strip() == ("Umbrella: walked home in heavy rain. " * 300).strip()
    count = structured(
        await client.call_tool("aggregate", {"stream": "messages", "metric": "count"})
    )
    assert count["data"]["value"] == 2
    refused = await client.call_tool("query_records", {"stream": "messages", "fields": ["to"]})
    assert refused.is_error
    assert (refused.structured_content or {})["error"]["code"] == "field_not_granted"
    rows = await client.call_tool("query_records", {"stream": "messages"})
    assert "hidden-recipient" not in rows.model_dump_json()


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_agent_reads_the_slice_over_stdio(only_read: Home, mode: str) -> None:
    server = StdioServerParameters(
        command=str(BIN / "pdpp-mcp-server"),
        args=["--cache-root", str(only_read.cache)],
        env=dict(only_read.environ),
    )
    async with Client(stdio_client(server), mode=mode) as client:
        await read_everything(client)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_agent_reads_the_same_over_http(only_read: Home, mode: str) -> None:
    headers = {"Authorization": f"Bearer {only_read.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=240) as http,
        Client(
            streamable_http_client(f"{only_read.origin}/mcp", http_client=http), mode=mode
        ) as client,
    ):
        await read_everything(client)


def test_what_commands_write_beside_the_server_is_seen_with_the_next_request(
    served: Home,
) -> None:
    records = "/v1/streams/messages/records?count=exact"
    first = served.get(records).json()
    assert first["meta"]["count"]["value"] == 2
    feed = served.get("/v1/streams/messages/records?changes_since=beginning").json()
    more = served.mailbox("Umbrella", "Harvest", "Lantern")
    [report] = served.pdpp("import", str(more), "--connection", "Home")["imports"]
    assert report["streams"]["messages"]["new"] == 1
    [again] = served.pdpp("import", str(more), "--connection", "Home")["imports"]
    assert again["streams"]["messages"]["new"] == 0
    assert served.get(records).json()["meta"]["count"]["value"] == 3
    assert len(served.get("/v1/search?q=lantern").json()["data"]) == 1
    bookmark = feed["next_changes_since"]
    changed = served.get(f"/v1/streams/messages/records?changes_since={bookmark}").json()
    assert [row["data"]["subject"] for row in changed["data"]] == ["Lantern"]


def test_an_end_bites_with_the_next_request_at_both_doors(served: Home) -> None:
    [grant] = served.pdpp("grant", "list")
    shown = served.pdpp("grant", "show", grant["id"])
    assert shown["alarms"] == []
    served.pdpp("grant", "revoke", grant["id"])
    refused = served.get("/v1/streams")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "grant_revoked")
    headers = {"Authorization": f"Bearer {served.token}"}
    hosted = httpx2.post(f"{served.origin}/mcp", headers=headers, json={})
    assert (hosted.status_code, hosted.json()["error"]["code"]) == (401, "grant_revoked")
    assert 'error="invalid_token"' in hosted.headers["WWW-Authenticate"]


def test_the_owner_sees_what_was_read(only_read: Home) -> None:
    only_read.get("/v1/streams/messages/records?fields=subject")
    only_read.get("/v1/streams/messages/records?fields=to")
    # The log is written behind the answers, within a second; a command starts faster than that.
    logged = (only_read.pdpp("disclosures", "--limit", "2") for _ in range(10))
    newest = ["denied", "served"]  # of what others read here before, the newest was served
    denied, read = next(two for two in logged if [one["outcome"] for one in two] == newest)
    assert (read["outcome"], read["record_count"], read["stream"]) == ("served", 2, "messages")
    assert (denied["outcome"], denied["error_code"]) == ("denied", "field_not_granted")
    assert "Umbrella" not in json.dumps([read, denied])
