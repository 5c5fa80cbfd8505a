"""Two processes on one database present the same credential at once: it is answered once."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import textwrap
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from personal_server.storage.authorization_rows import FamilyRow, GrantRow, TokenRow
from server.tests.authorization_server.application.endpoints import DETAILS, approved_device
from server.tests.authorization_server.conftest import VERIFIER, entry

IN_A_FILE = pytest.param("sqlite", marks=pytest.mark.of_files("both processes open the file"))
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("store", [IN_A_FILE, "postgres"], indirect=True),
]
ROUNDS = 12
RACER = """
import json, secrets, sys
from pathlib import Path
from pdpp_kernel.oauth_errors import OAuthRefusal
from personal_server.granting.audit import Acting
from personal_server.granting.codes import Redeeming, Redemption
from personal_server.granting.tokens import Refresh, Rotating
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.sqlite.database import SqliteDatabase

path = Path(sys.argv[1])
shared = path.with_name("schema")
if shared.exists():
    url, schema = shared.read_text().splitlines()
    database = PostgresDatabase(url, path.parent, schema)
else:
    database = SqliteDatabase(path)
store = SqlAuthorizationStore(database, "own_1")
clock = lambda: int(sys.argv[2])
redeeming = Redeeming(store, clock, secrets.token_bytes)
rotating = Rotating(store, clock, secrets.token_bytes, lambda: None)
acting = Acting("client", "req_race", "127.0.0.1")
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    try:
        match asked.pop("kind"):
            case "code":
                issued = redeeming.redeem_code(Redemption(**asked), acting)
            case "device":
                issued = redeeming.redeem_device_code(Redemption(**asked), acting)
            case "refresh":
                issued = rotating.rotate(Refresh(**asked), acting)
        found = {"access_token": issued.access_token, "refresh_token": issued.refresh_token}
        print(json.dumps(found), flush=True)
    except OAuthRefusal as refused:
        print(json.dumps({"error": refused.code}), flush=True)
"""


@dataclass
class Racers:
    """Processes that wait for a credential."""

    processes: list[subprocess.Popen[str]]

    def run(self, **asked: str) -> tuple[list[str], list[str]]:
        """Give the same credential to all at once: the tokens of winners, the errors of losers."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
        answers = [json.loads(_line(process)) for process in self.processes]
        won = [answer["access_token"] for answer in answers if "error" not in answer]
        return won, [answer["error"] for answer in answers if "error" in answer]


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.fixture
def server(server: Any) -> Any:
    server.bytes_of = secrets.token_bytes
    return server


@pytest.fixture
def racers(server: Any, tmp_path: Path) -> Generator[Racers]:
    arguments = [str(tmp_path / "pdpp.db"), str(server.now_ns)]
    command = [sys.executable, "-c", textwrap.dedent(RACER), *arguments]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    for process in processes:
        assert _line(process) == "ready\n"
    yield Racers(processes)
    for process in processes:
        process.communicate(timeout=240)


async def test_one_code_gives_tokens_once_and_its_replay_ends_them(
    app: Any, racers: Racers
) -> None:
    for number in range(ROUNDS):
        app.server.change(
            GrantRow,
            [GrantRow.revoked_at_ns.to(1), GrantRow.reason.to("owner")],
            GrantRow.revoked_at_ns.equals(None),
        )
        code = await app.code(authorization_details=DETAILS)
        won, lost = racers.run(
            kind="code", client_id=app.client_id, code=code, auth_method="none", verifier=VERIFIER
        )
        assert (len(won), lost) == (1, ["invalid_grant"])
        assert len(app.server.rows(TokenRow)) == number + 1
        assert (await app.current(won[0])).status_code == 401
    ended = {row.reason for row in app.server.rows(GrantRow)}
    assert ended == {"code_replay"}
    assert {row.reason for row in app.server.rows(FamilyRow)} == {"code_replay"}


async def test_one_single_use_code_gives_one_token(app: Any, racers: Racers) -> None:
    once = json.dumps([entry(access_mode="single_use")])
    for number in range(ROUNDS):
        code = await app.code(authorization_details=once)
        won, lost = racers.run(
            kind="code", client_id=app.client_id, code=code, auth_method="none", verifier=VERIFIER
        )
        assert (len(won), lost) == (1, ["invalid_grant"])
        assert len(app.server.rows(TokenRow)) == number + 1
    assert app.server.rows(FamilyRow) == []


async def test_one_refresh_token_has_one_answer_for_both(app: Any, racers: Racers) -> None:
    for number in range(ROUNDS):
        tokens = await app.connect(authorization_details=DETAILS)
        won, lost = racers.run(
            kind="refresh",
            client_id=app.client_id,
            refresh_token=tokens["refresh_token"],
            auth_method="none",
        )
        assert (len(won), len(set(won)), lost) == (2, 1, [])
        assert (await app.current(won[0])).status_code == 200
        assert len(app.server.rows(TokenRow)) == 2 * (number + 1)
    assert {row.reason for row in app.server.rows(FamilyRow)} == {None}


async def test_one_device_code_is_collected_once(app: Any, racers: Racers) -> None:
    for number in range(ROUNDS):
        code = await approved_device(app)
        won, lost = racers.run(kind="device", client_id="pdpp-cli", code=code, auth_method="none")
        assert (len(won), lost) == (1, ["invalid_grant"])
        assert len(app.server.rows(TokenRow)) == number + 1
        assert (await app.current(won[0])).status_code == 200
