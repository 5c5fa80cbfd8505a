"""Search by meaning from end to end: a server process with a real model, and one without any."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.app.owner_store import OwnerStore, open_owner_store
from personal_server.app.stores import open_stores
from personal_server.consent.selections import parse_selections
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.stored import (
    Batch,
    RecordWrite,
)
from personal_server.granting.audit import Acting
from personal_server.granting.local_grants import LocalRequest
from personal_server.semantics.chosen import GET_PACKAGES, NEEDED
from server.tests.app.http_server.served import (
    CALLER,
    ServedProcess,
    command,
    served_process,
    until,
)
from server.tests.console.household import HOME, mail_request
from server.tests.semantics.weights import MODEL, needs_weights

TEXTS = {
    "m1": ("Our new puppy", "It chews everything it finds, and wants to go out at six."),
    "m2": ("Invoice 12", "Please pay within a month."),
    "m3": ("Weather", "Tomorrow it is sunny, with some wind from the sea."),
}
ASKED = "training a young dog"
# A Python that finds none of what the extra `semantic` brings.
WITHOUT = f"""
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in {NEEDED!r}:
            return None
        return super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""


def grant(store: OwnerStore) -> str:
    asked = LocalRequest("A reader of mail", store.origin, parse_selections(mail_request()))
    return store.granting.approve(
        asked, store.granting.review(asked), Acting("local_cli")
    ).access_token


def keep(served: ServedProcess) -> None:
    declared = parse_declaration(MAIL).streams["messages"]
    rows: list[dict[str, Any]] = [
        {"id": key, "subject": subject, "body": body, "sent_at": at, "received_at": at}
        for at in ["2026-03-01T10:00:00Z"]
        for key, (subject, body) in TEXTS.items()
    ]
    with open_stores(served.settings, serving=False) as stores:
        now_ns = stores.clock()
        writes = [RecordWrite(row["id"], row, now_ns) for row in rows]
        stores.records.commit(Batch(HOME, declared, writes, now_ns))


def pdpp(served: ServedProcess, *arguments: str) -> str:
    """What a command says, on both its outputs."""
    variables = {"PDPP_DATA_DIR": str(served.folder / "data"), **served.environ}
    run = subprocess.run(
        ["/usr/bin/env", *(f"{name}={value}" for name, value in variables.items()), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr


def tool(served: ServedProcess, token: str, **arguments: Any) -> dict[str, Any]:
    """What `search` says over /mcp."""
    called = {"name": "search", "arguments": arguments}
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    return CALLER.post(f"{served.origin}/mcp", json=asked, headers=headers).json()["result"]


def shown_by_tool(served: ServedProcess, token: str) -> list[str]:
    results = tool(served, token, query=ASKED)["structuredContent"]["results"]
    return [each["id"].partition(":")[2] for each in results]


def search(served: ServedProcess, token: str, **more: str) -> httpx2.Response:
    return served.get(f"/v1/search?{httpx2.QueryParams({'q': ASKED, **more})}", token)


@needs_weights
def test_a_real_model_finds_what_is_meant_until_it_is_gone(tmp_path: Path) -> None:
    served = ServedProcess(tmp_path, {})
    served.furnish()
    keep(served)
    with open_owner_store(served.settings) as store:
        token = grant(store)
    assert "384 dimensions" in pdpp(served, *command("semantic", "install", "--from", str(MODEL)))
    served.start()
    try:
        # A query that is not embedded within seconds, as on a busy machine, is answered by words
        # alone, and so are those of the half minute that follows.
        def embedded() -> bool:
            answers.append(search(served, token).json())
            recall = answers[-1]["meta"]["recall"]
            return recall.get("unembedded_record_count") == 0 and recall["mode"] == "hybrid"

        answers: list[dict[str, Any]] = []
        until(embedded, seconds=120, pause_seconds=0.2)
        assert answers[-1]["data"][0]["record_id"] == "m1"
        until(lambda: shown_by_tool(served, token)[:1] == ["m1"], seconds=120, pause_seconds=0.2)

        def status_of() -> dict[str, Any]:
            return json.loads(pdpp(served, *command("semantic", "status", "--json")))

        # what is not granted, too
        until(lambda: status_of()["percent"] == 100, seconds=120, pause_seconds=0.5)
        status = status_of()
        fields = {tuple(each["fields"]) for each in status["streams"]}
        assert fields == {("subject", "body"), ("payee",)}
        assert "messages.body" in pdpp(served, *command("semantic", "status"))
        place = f"{served.origin}/v1/streams/messages/records/m1?connection_id={HOME}"
        owner = {"Authorization": f"Bearer {served.owner_token}"}
        assert CALLER.delete(place, headers=owner).status_code < 300
        assert "m1" not in [each["record_id"] for each in search(served, token).json()["data"]]
        assert "m1" not in shown_by_tool(served, token)
        assert served.stop() == 0
    finally:
        if served.process.poll() is None:
            served.process.kill()
            served.process.wait()


@pytest.fixture
def without(tmp_path: Path) -> Generator[ServedProcess]:
    """A server whose machine never heard of the extra."""
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(WITHOUT)
    with served_process(tmp_path, PYTHONPATH=str(hook)) as made:
        keep(made)
        yield made


def test_without_the_extra_words_are_found_and_one_line_says_how_to_get_the_rest(
    without: ServedProcess,
) -> None:
    with open_owner_store(without.settings) as store:
        token = grant(store)
    found = without.get("/v1/search?q=puppy", token).json()
    assert [each["record_id"] for each in found["data"]] == ["m1"]
    assert "mode" not in found["meta"]["recall"]
    refused = search(without, token, mode="meaning")
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (400, "unsupported_search_mode")
    assert "make semantic" in error["message"]
    told = tool(without, token, query="puppy", mode="semantic")
    assert told["isError"]
    assert "make semantic" in told["content"][0]["text"]
    status = pdpp(without, *command("semantic", "status"))
    assert GET_PACKAGES in " ".join(status.split())
    assert "onnxruntime" in pdpp(without, *command("semantic", "install"))
    assert without.health()["status"] == "ok"
