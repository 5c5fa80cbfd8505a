"""Clients that two generators write from the OpenAPI document read from a running server."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from bench.clients import RestCaller
from bench.importing import generated
from bench.site import Site
from tests.generated_clients.generators import (
    needs_generators,
    read_with_python,
    read_with_typescript,
)

pytestmark = [pytest.mark.clients, needs_generators]
SINCE = "2010-01-01T00:35:00Z"  # the sixth of mails that come every seven minutes


@dataclass(frozen=True, slots=True)
class Served:
    """A server with nine mails, the document it publishes, and what a reader should tell."""

    origin: str
    token: str
    document: Path
    expected: dict[str, Any]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("served")
    site, mailbox, document = Site(folder), folder / "nine.mbox", folder / "openapi.json"
    mailbox.write_bytes(b"".join(islice(generated(9), 9)))
    imported = site.command("pdpp", "import", str(mailbox))
    subprocess.run(imported, check=True, capture_output=True)
    token, _ = site.grant("clients", "--source", "mail")
    with site.serving():
        with urlopen(f"{site.origin}/openapi.json") as answer:  # noqa: S310 (our own)
            document.write_bytes(answer.read())
        with closing(RestCaller(site.origin, token)) as caller:
            told = expected(caller)
        yield Served(site.origin, token, document, told)


def expected(caller: RestCaller) -> dict[str, Any]:
    """What the plain wire tells."""
    streams = caller.get("/v1/streams")["data"]
    rows = caller.get("/v1/streams/messages/records")["data"]
    late = [row for row in rows if row["data"]["sent_at"] >= SINCE]
    assert (len(rows), len(late)) == (9, 4)
    return {
        "streams": [stream["name"] for stream in streams],
        "ids": [row["id"] for row in late],
        "record": {"id": late[-1]["id"], "subject": late[-1]["data"]["subject"]},
        "refusal": {"status": 403, "code": "grant_stream_not_allowed"},
    }


# Both are made from one document, whose answers `resource_server/test_openapi.py` checks.
@pytest.mark.parametrize(
    "read", [read_with_python, pytest.param(read_with_typescript, marks=pytest.mark.long)]
)
def test_a_generated_client_reads(served: Served, tmp_path: Path, read: Callable[..., Any]) -> None:
    told = read(served.document, tmp_path, served.origin, served.token, SINCE)
    assert told == served.expected
