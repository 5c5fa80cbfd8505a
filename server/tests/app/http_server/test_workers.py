"""Several processes that serve one owner: what one knows all know, and nobody notices a death."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import cast
from urllib.parse import urlencode

import pytest

from pdpp_sources.bank.reader import DECLARATION as BANK
from personal_server.app.owner_store import open_owner_store
from personal_server.app.stores import open_stores
from personal_server.consent.credentials import secret_hash
from personal_server.storage.authorization_rows import TokenRow
from personal_server.storage.ports.disclosure_stores import DisclosureQuery
from server.tests.app.http_server.killed import run
from server.tests.app.http_server.served import PAYMENTS, ServedProcess, client_token, until
from server.tests.app.http_server.several import (
    Caller,
    all_serve,
    callers_of_each,
    resident_mib,
    several,
    workers_of,
)

WORKERS, BURST = 2, 40
WHOLE = "/v1/streams/transactions/records?limit=1"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
LIMITS = {"PDPP_RATE_BURST": str(BURST), "PDPP_RATE_PER_SECOND": "1"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedProcess]:
    with several(tmp_path_factory.mktemp("several"), WORKERS, **LIMITS) as process:
        yield process


@pytest.fixture
def callers(served: ServedProcess) -> Generator[list[Caller]]:
    found = callers_of_each(served)
    yield found
    for caller in found:
        caller.connection.close()


def new_token(served: ServedProcess) -> str:
    """Of a grant of its own."""
    with open_owner_store(served.settings) as store:
        return client_token(store)


def test_a_grant_has_its_requests_once_whichever_worker_it_asks(
    served: ServedProcess, callers: list[Caller]
) -> None:
    token, begun = new_token(served), time.monotonic()
    statuses = Counter(
        callers[number % WORKERS].ask(PAYMENTS, token)[0] for number in range(2 * BURST)
    )
    regained = time.monotonic() - begun + 1
    assert BURST <= statuses[200] <= BURST + regained
    assert statuses[429] == 2 * BURST - statuses[200]


def test_a_bearer_that_is_refused_is_counted_by_all(callers: list[Caller]) -> None:
    statuses = [callers[number % WORKERS].ask(PAYMENTS, "wrong")[0] for number in range(34)]
    assert statuses == [401] * 30 + [429] * 4


def test_guesses_of_a_password_are_counted_by_all(
    served: ServedProcess, callers: list[Caller]
) -> None:
    with open_owner_store(served.settings) as store:
        store.sign_in.set_password("correct horse battery")
    page = served.get("/owner/login")
    csrf = re.findall(r'name="_csrf" value="([^"]+)"', page.text)[0]
    cookies = "; ".join(f"{name}={value}" for name, value in page.cookies.items())
    form = urlencode({"_csrf": csrf, "password": "wrong"}).encode()
    headers = {"Origin": served.origin, "Cookie": cookies, **FORM}
    statuses: list[int] = []
    # By itself a worker refuses none of these. Guesses may be slower than the first short delays.
    for number in range(5 * WORKERS):
        caller = callers[number % WORKERS]
        statuses.append(caller.ask("/owner/login", method="POST", body=form, **headers)[0])
        if statuses[-1] == 429:
            break
    assert statuses[:5] == [401] * 5
    assert statuses[-1] == 429


def test_what_a_caller_may_read_ends_everywhere_with_the_next_request(
    served: ServedProcess, callers: list[Caller]
) -> None:
    token = new_token(served)
    for caller in callers:
        assert caller.ask(PAYMENTS, token)[0] == 200
    with open_owner_store(served.settings) as store, store.authorization.read() as reader:
        [row] = reader.rows(TokenRow, TokenRow.token_hash.equals(secret_hash(token)))
    body = urlencode({"token": token, "client_id": row.client_id}).encode()
    assert callers[0].ask("/oauth/revoke", method="POST", body=body, **FORM)[0] == 200
    assert [caller.ask(PAYMENTS, token)[0] for caller in callers] == [401] * WORKERS


def test_a_grant_that_is_narrowed_is_so_everywhere_with_the_next_request(
    served: ServedProcess, callers: list[Caller]
) -> None:
    token = new_token(served)

    def fields(caller: Caller) -> set[str]:
        status, body = caller.ask(WHOLE, token)
        assert status == 200
        return set(json.loads(body)["data"][0]["data"])

    before = [fields(caller) for caller in callers]
    assert before[0] == before[1]
    taken = next(name for name in ("direction", "payee", "currency") if name in before[0])
    declared = {**BANK, "declaration_version": "narrowed"}
    body = json.dumps(without(declared, taken)).encode()
    kind = {"Content-Type": "application/json"}
    status, said = callers[0].ask(
        "/v1/owner/declarations", served.owner_token, "POST", body, **kind
    )
    assert status == 201, said
    assert [fields(caller) for caller in callers] == [before[0] - {taken}] * WORKERS


def without(document: object, name: str) -> object:
    """A document that does not name it."""

    def of_object(found: dict[str, object]) -> dict[str, object]:
        return {key: of_list(value) for key, value in found.items() if key != name}

    def of_list(value: object) -> object:
        if not isinstance(value, list):
            return value
        return [each for each in cast("list[object]", value) if each != name]

    return json.loads(json.dumps(document), object_hook=of_object)


def test_health_is_of_all_and_tells_their_memory(
    served: ServedProcess, callers: list[Caller]
) -> None:
    def tells_what_is_held(caller: Caller) -> bool:
        said = json.loads(caller.ask("/healthz")[1])
        assert said["status"] == "ok"
        told = [each["memory_bytes"] // 2**20 for each in said["workers"]]
        held = [resident_mib(pid) for pid in workers_of(served)]
        assert len(told) == WORKERS
        return all(abs(a - b) < 30 for a, b in zip(sorted(told), sorted(held), strict=True))

    for caller in callers:  # what is told is some seconds old, while memory still grows
        until(partial(tells_what_is_held, caller))


def test_a_worker_that_dies_is_told_of_and_followed_by_another(served: ServedProcess) -> None:
    before = workers_of(served)
    os.kill(before[1], signal.SIGKILL)
    until(lambda: served.health().get("faults"))
    [fault] = served.health()["faults"]
    assert (fault["part"], fault["code"]) == ("worker.1", "worker_ended")
    assert served.get(PAYMENTS, served.owner_token).status_code == 200
    until(lambda: served.health()["status"] == "ok")
    assert workers_of(served)[0] == before[0]
    assert workers_of(served)[1] != before[1]


def test_whoever_loses_its_supervisor_stops(tmp_path: Path) -> None:
    with several(tmp_path, WORKERS) as served:
        workers = workers_of(served)
        token = served.client_token
        for caller in callers_of_each(served):
            assert caller.ask(PAYMENTS, token)[0] == 200
            caller.connection.close()
        served.process.kill()
        served.process.wait()
        until(lambda: not any(resident_mib(pid) for pid in workers))
        with open_owner_store(served.copied_database()) as store:
            assert len(store.disclosures.disclosures(DisclosureQuery(10))) == WORKERS


def test_a_second_server_finds_the_data_in_use(served: ServedProcess) -> None:
    with (
        pytest.raises(Exception, match="Another server"),
        open_stores(served.settings, serving=True),
    ):
        pass


def test_a_leader_that_cannot_begin_says_why_and_ends_all(tmp_path: Path) -> None:
    served = ServedProcess(tmp_path, {"PDPP_WORKERS": "2", "PDPP_PUBLIC_URL": "https://me.example"})
    served.furnish()
    with pytest.raises(AssertionError):
        served.start()
    assert served.process.returncode == 78
    until(lambda: "reachable from outside" in served.log)


@pytest.mark.timeout(120)
def test_callers_of_workers_that_are_killed_are_answered_and_nothing_is_written_twice(
    tmp_path: Path,
) -> None:
    found = run(tmp_path, seconds=5, callers=16)
    assert found.kills
    assert found.problems() == []


def test_whoever_is_copied_has_one_thread(served: ServedProcess) -> None:
    assert len(list(Path(f"/proc/{served.process.pid}/task").iterdir())) == 1


AS_ON_MACOS = """
import sys
from personal_server.cli import serve
serve.workers_of = lambda platform, of=serve.workers_of: of("darwin")
sys.exit(serve.serve())
"""


def test_workers_are_programs_of_their_own_on_macos(tmp_path: Path) -> None:
    served = ServedProcess(
        tmp_path, {"PDPP_WORKERS": "2"}, program=(sys.executable, "-c", AS_ON_MACOS)
    )
    served.furnish()
    served.start()
    until(lambda: all_serve(served, 2))
    for pid in workers_of(served):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        assert words[1:4] == ["-P", "-m", "personal_server.cli.serving_process"]
    assert served.get(PAYMENTS, served.client_token).status_code == 200
    assert served.stop() == 0, served.log
