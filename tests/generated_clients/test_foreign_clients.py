"""Programs of others against a running server: calls drawn from the document, models, agents.

They take minutes and an environment of their own, which `make clients-long` installs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.request import urlopen

import pytest

from bench.clients import RestCaller
from bench.importing import generated
from bench.site import Site
from tests.generated_clients.generators import HERE, INSTALLED, NODE, run
from tests.generated_clients.pretended_model import NAME, pretended_model
from tests.generated_clients.test_generated_clients import SINCE, expected

FOREIGN = INSTALLED.with_name("clients-long")
PROGRAMS, LOCKS = FOREIGN / "python" / "bin", ("foreign.txt", "hosts/package-lock.json")
HOSTS = FOREIGN / "hosts" / "node_modules"
EXAMPLES = "5"
CONFORMANCE = ("status_code", "content_type", "response_schema")
CHECKS = ",".join(["not_a_server_error", *(f"{each}_conformance" for each in CONFORMANCE)])
# A serializer for lines of JSON is not among its own.
LINES = "/v1/ingest/{stream}"
SECONDS = 1_500
HOST_SECONDS = 120
QUESTION, TOKEN = "What is there?", "PERSONAL_SERVER_TOKEN"


def is_installed() -> bool:
    """Whether the very programs that are locked here have been installed."""
    return (FOREIGN / "installed.stamp").is_file() and all(
        (FOREIGN / lock).read_bytes() == (HERE / lock).read_bytes() for lock in LOCKS
    )


pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(SECONDS),
    pytest.mark.skipif(not is_installed(), reason="make clients-long installs these programs"),
]


@dataclass(frozen=True, slots=True)
class Served:
    """A server with nine mails, and what it publishes."""

    site: Site
    document: Path

    def token(self, name: str) -> str:
        """One more app's, which may end its own access."""
        return self.site.grant(name, "--source", "mail")[0]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("served")
    site, mailbox, document = Site(folder), folder / "nine.mbox", folder / "openapi.json"
    mailbox.write_bytes(b"".join(islice(generated(9), 9)))
    imported = site.command("pdpp", "import", str(mailbox))
    subprocess.run(imported, check=True, capture_output=True)
    with site.serving():
        with urlopen(f"{site.origin}/openapi.json") as answer:  # noqa: S310 (our own)
            document.write_bytes(answer.read())
        yield Served(site, document)


def test_models_made_from_the_document_take_every_answer(served: Served, tmp_path: Path) -> None:
    token = served.token("models")
    made = ("--input-file-type", "openapi", "--output-model-type", "pydantic_v2.BaseModel")
    program = PROGRAMS / "datamodel-codegen"
    run(tmp_path, program, "--input", served.document, "--output", "models.py", *made)
    shutil.copy(HERE / "models_reader.py", tmp_path)
    with closing(RestCaller(served.site.origin, token)) as caller:
        plain = expected(caller)
    reader = (PROGRAMS / "python", "models_reader.py", served.site.origin, token, SINCE)
    assert json.loads(run(tmp_path, *reader)) == plain


def test_an_agent_lists_the_tools_and_calls_them(served: Served, tmp_path: Path) -> None:
    shutil.copy(HERE / "agent.py", tmp_path)
    token = served.token("agent")
    told = json.loads(run(tmp_path, PROGRAMS / "python", "agent.py", served.site.origin, token))
    assert told["called"] == ["schema"]
    assert {"query_records", "schema", "search"} <= set(told["tools"])
    with closing(RestCaller(served.site.origin, token)) as caller:
        rows = caller.get("/v1/streams/messages/records?limit=3")["data"]
    assert told["ids"] == [row["id"] for row in rows]


@dataclass(frozen=True, slots=True)
class Host:
    """A host of agents, at home in a folder of its own.

    Shapes: settings name the token by a variable, since no file of a test may hold one.
    """

    folder: Path
    url: str
    token: str
    model: str

    def with_opencode(self) -> None:
        """Its program for Linux, with a provider like OpenAI."""
        program = HOSTS / "opencode-linux-x64" / "bin" / "opencode"
        headers = {"Authorization": f"Bearer {{env:{TOKEN}}}"}
        server = {"type": "remote", "url": self.url, "headers": headers, "oauth": False}
        serves = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{self.model}/v1"}}
        provider = {**serves, "models": {NAME: {"tool_call": True}}}
        settings = {"mcp": {"personal": server}, "provider": {NAME: provider}}
        (self.folder / "opencode.json").write_text(json.dumps(settings))
        self._run({}, program, "run", "-m", f"{NAME}/{NAME}", QUESTION)

    def with_gemini(self) -> None:
        """Gemini CLI, sent to another address than its vendor's."""
        headers = {"Authorization": f"Bearer ${TOKEN}"}
        settings = {
            "mcpServers": {"personal": {"httpUrl": self.url, "headers": headers, "trust": True}},
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
        }
        (self.folder / ".gemini").mkdir()
        (self.folder / ".gemini" / "settings.json").write_text(json.dumps(settings))
        told = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": self.model}
        told |= {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
        program = HOSTS / ".bin" / "gemini"
        self._run(told, NODE, program, "-m", "gemini-2.5-flash", "--yolo", "-p", QUESTION)

    def _run(self, told: Mapping[str, str], *command: str | Path) -> None:
        environ = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin", TOKEN: self.token, **told}
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=HOST_SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("ask", [Host.with_opencode, Host.with_gemini])
def test_a_host_offers_its_model_the_tools_and_calls_them(
    served: Served, tmp_path: Path, ask: Callable[[Host], None]
) -> None:
    if ask is Host.with_opencode and sys.platform != "linux":
        pytest.skip("opencode's program is locked for Linux alone")
    token = served.token(ask.__name__)
    with pretended_model("schema") as model:
        ask(Host(tmp_path, f"{served.site.origin}/mcp", token, model.origin))
    tools = {name.rpartition("personal_")[2] for name in model.offered}
    assert {"aggregate", "fetch", "query_records", "read_record_field", "schema", "search"} <= tools
    assert "connector_key=mail" in model.answers[-1]


def test_calls_drawn_from_the_document_are_answered_as_it_says(
    served: Served, tmp_path: Path
) -> None:
    """Each alone, and in sequences in which one takes what another answered."""
    done = subprocess.run(
        [
            *(PROGRAMS / "schemathesis", "run", f"{served.site.origin}/openapi.json"),
            *("-H", f"Authorization: Bearer {served.token('calls')}", "--mode", "all"),
            *("--phases", "coverage,fuzzing,stateful", "-n", EXAMPLES, "--seed", "1"),
            *("--checks", CHECKS, "--exclude-path", LINES, "--suppress-health-check", "all"),
            *("--request-timeout", "60", "--no-color"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stderr
