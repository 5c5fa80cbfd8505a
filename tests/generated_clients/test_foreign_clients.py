"""Programs of others against a running server: calls drawn from the document, models, an agent.

They take minutes and an environment of their own, which `make clients-long` installs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.request import urlopen

import pytest

from bench.clients import RestCaller
from bench.importing import generated
from bench.site import Site
from tests.generated_clients.generators import HERE, INSTALLED, run
from tests.generated_clients.test_generated_clients import SINCE, expected

FOREIGN = INSTALLED.with_name("clients-long")
PROGRAMS, LOCK = FOREIGN / "python" / "bin", "foreign.txt"
EXAMPLES = "5"
CONFORMANCE = ("status_code", "content_type", "response_schema")
CHECKS = ",".join(["not_a_server_error", *(f"{each}_conformance" for each in CONFORMANCE)])
# A serializer for lines of JSON is not among its own.
LINES = "/v1/ingest/{stream}"
SECONDS = 1_500


def is_installed() -> bool:
    """Whether the very programs that are locked here have been installed."""
    stamp = FOREIGN / "installed.stamp"
    return stamp.is_file() and (FOREIGN / LOCK).read_bytes() == (HERE / LOCK).read_bytes()


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
