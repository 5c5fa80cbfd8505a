from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from adapter.tests.rs_client.provider import ORIGIN
from personal_server.web.health import Fault
from server.tests.cli.owner_desk import OwnerDesk
from server.tests.cli.test_doctor import WholeProvider, by_code

FAULTS = [
    Fault("disk", "disk_full", 10**18, "Free space.", serving=False).as_json(),
    Fault("task.backup", "storage_unavailable", 10**18, "See the log.").as_json(),
]


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> OwnerDesk:
    monkeypatch.setenv("COLUMNS", "160")
    for name in ("PDPP_BIND", "PDPP_PUBLIC_URL"):
        monkeypatch.delenv(name, raising=False)
    return OwnerDesk(tmp_path, capsys, WholeProvider())


def asked(desk: OwnerDesk, *arguments: str, code: int) -> dict[str, Any]:
    assert desk.run("doctor", *arguments, "--json") == code, desk.out
    return by_code(json.loads(desk.out))


def test_a_sound_server_of_this_machine_is_three_good_lines(desk: OwnerDesk) -> None:
    found = asked(desk, code=0)
    assert {name: one["state"] for name, one in found.items()} == {
        "reachable": "good",
        "health": "good",
        "search_by_meaning": "good",
    }


@pytest.mark.parametrize(("status", "said"), [(503, "failing"), (200, "degraded")])
def test_it_names_the_faults_that_health_names(desk: OwnerDesk, status: int, said: str) -> None:
    desk.provider.changes = {"/healthz": (status, {"status": said, "faults": FAULTS})}
    found = asked(desk, code=69)
    assert found["health.disk"]["mend"] == "Free space."
    assert found["health.disk"]["fault"] == "disk_full"
    assert "disk_full" in found["health.disk"]["said"]
    assert found["health.task.backup"]["state"] == "wrong"


def test_it_tells_of_work_that_is_under_way(desk: OwnerDesk) -> None:
    said = {"status": "ok", "progress": {"rebuilding": 42}}
    desk.provider.changes = {"/healthz": (200, said)}
    found = asked(desk, code=0)["progress.rebuilding"]
    assert found["state"] == "good"
    assert "42" in found["said"].split()


def test_it_tells_the_memory_of_each_process(desk: OwnerDesk) -> None:
    said = {
        "status": "ok",
        "workers": [{"memory_bytes": 117_400_000}, {"memory_bytes": 98_000_000}],
    }
    desk.provider.changes = {"/healthz": (200, said)}
    found = asked(desk, code=0)["processes"]
    assert found["state"] == "good"
    assert re.findall("[0-9]+", found["said"]) == ["2", "117", "98"]


def test_a_server_that_does_not_run_is_said_to_not_run(desk: OwnerDesk) -> None:
    desk.provider.down = True
    found = asked(desk, code=69)
    assert found["reachable"]["state"] == "wrong"
    assert "pdpp serve" in found["reachable"]["mend"]


def test_something_else_at_its_address_is_not_taken_for_it(desk: OwnerDesk) -> None:
    desk.provider.changes = {"/healthz": (200, {"status": "fine"})}
    assert asked(desk, code=69)["reachable"]["state"] == "wrong"


def test_a_server_in_need_of_care_is_still_checked_for_hosts(desk: OwnerDesk) -> None:
    desk.provider.changes = {"/healthz": (200, {"status": "degraded", "faults": FAULTS[1:]})}
    found = asked(desk, ORIGIN, code=69)
    assert found["reachable"]["state"] == found["Codex"]["state"] == "good"
    assert found["health.task.backup"]["state"] == "wrong"
