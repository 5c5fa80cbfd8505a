"""What was given is changed while two processes serve: each sees it with its next request."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import pytest

from personal_server.app.owner_store import open_owner_store
from personal_server.consent.credentials import secret_hash
from personal_server.storage.authorization_rows import TokenRow
from server.tests.app.http_server.served import ServedProcess, client_token, command
from server.tests.app.http_server.several import Caller, callers_of_each, several
from tests.postgresql import schema, server

WORKERS = 2
ROWS = "/v1/streams/transactions/records?limit=1"
FEED = "/v1/streams/transactions/records?changes_since=now"


# How processes tell each other is the same on both; `storage` proves what each database tells.
@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)]
)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[ServedProcess]:
    with ExitStack() as stack:
        environ: dict[str, str] = {}
        if request.param == "postgresql":
            name = stack.enter_context(schema())
            environ = {"PDPP_DATABASE_URL": server().url(), "PDPP_DATABASE_SCHEMA": name}
        folder = tmp_path_factory.mktemp("changed")
        yield stack.enter_context(several(folder, WORKERS, **environ))


@pytest.fixture
def callers(served: ServedProcess) -> Generator[list[Caller]]:
    found = callers_of_each(served)
    yield found
    for caller in found:
        caller.connection.close()


def pdpp(served: ServedProcess, *arguments: str) -> str:
    """What a command of the same machine prints."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PDPP_")}  # noqa: TID251 (a child's environment)
    where = {"PDPP_DATA_DIR": str(served.settings.data_dir), "PDPP_PUBLIC_URL": served.origin}
    done = subprocess.run(
        command("grant", *arguments),
        env={**kept, **where, **served.environ},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def change(served: ServedProcess, held_id: str, *left: str) -> str:
    """The id of what takes its place."""
    return json.loads(pdpp(served, "change", held_id, *left, "--yes", "--json"))["id"]


def body_of(caller: Caller, path: str, token: str) -> tuple[int, Any]:
    status, body = caller.ask(path, token)
    return status, json.loads(body)


def code_of(caller: Caller, path: str, token: str) -> tuple[int, str]:
    status, body = body_of(caller, path, token)
    return status, body["error"]["code"]


def test_a_change_is_there_with_the_next_request_of_every_process(
    served: ServedProcess, callers: list[Caller]
) -> None:
    with open_owner_store(served.settings) as store:
        token = client_token(store)
        with store.authorization.read() as reader:
            [row] = reader.rows(TokenRow, TokenRow.token_hash.equals(secret_hash(token)))
    held_id = row.grant_id or ""
    places: list[tuple[str, str]] = []
    for caller in callers:
        _, page = body_of(caller, ROWS, token)
        assert page["data"][0]["data"].keys() >= {"payee", "amount"}
        _, feed = body_of(caller, FEED, token)
        cursor, bookmark = page["next_cursor"], feed["next_changes_since"]
        places.append((f"{ROWS}&cursor={cursor}", FEED.replace("now", bookmark)))
        assert caller.ask(places[-1][0], token)[0] == 200
    changed = change(served, held_id, "--stream", "transactions:amount")
    for caller in callers:
        status, page = body_of(caller, ROWS, token)
        assert status == 200
        assert "payee" not in page["data"][0]["data"]
        for path in (path for both in places for path in both):
            assert code_of(caller, path, token) == (410, "cursor_expired")
        status, current = body_of(caller, "/grants/current", token)
        assert (current["grant_id"], current["status"]) == (changed, "active")
    pdpp(served, "pause", changed)
    assert [code_of(each, ROWS, token) for each in callers] == [(403, "grant_paused")] * WORKERS
    sooner = change(served, changed, "--expires", "30d")
    assert [code_of(each, ROWS, token) for each in callers] == [(403, "grant_paused")] * WORKERS
    pdpp(served, "resume", sooner)
    assert [each.ask(ROWS, token)[0] for each in callers] == [200] * WORKERS
    pdpp(served, "revoke", sooner)
    assert [code_of(each, ROWS, token) for each in callers] == [(403, "grant_revoked")] * WORKERS
