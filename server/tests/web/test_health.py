"""What anybody may ask: whether the server lives, and what needs care."""

from __future__ import annotations

from typing import Any

import orjson

from pdpp_kernel.errors import StorageUnavailable
from personal_server.web.health import Fault, Health

SMALL = Fault("task.backups", "storage_unavailable", 10**18, "Look at the log.")
LARGE = Fault("database", "storage_unavailable", 10**18, "Restore it.", serving=False)


def asked(*faults: Fault, path: str = "/healthz") -> tuple[int, Any]:
    health = Health()
    health.register(lambda: ())
    health.register(lambda: faults)
    response = health.response(path)
    return response.status_code, orjson.loads(response.body)


def test_a_server_without_faults_is_ok() -> None:
    assert asked() == (200, {"status": "ok"})


def test_long_work_that_is_under_way_is_no_fault() -> None:
    health, done = Health(), {"rebuilding": 42}
    health.register_progress(lambda: done)
    assert orjson.loads(health.response("/healthz").body) == {
        "status": "ok",
        "progress": {"rebuilding": 42},
    }
    done.clear()
    assert orjson.loads(health.response("/healthz").body) == {"status": "ok"}


def test_a_fault_that_keeps_nothing_from_being_served_is_told_and_no_more() -> None:
    status, said = asked(SMALL)
    assert (status, said["status"]) == (200, "degraded")
    assert said["faults"] == [
        {
            "part": "task.backups",
            "code": "storage_unavailable",
            "since": "2001-09-09T01:46:40.000Z",
            "next_step": "Look at the log.",
        }
    ]


def test_a_server_that_cannot_serve_says_so_to_machines_and_lives() -> None:
    status, said = asked(SMALL, LARGE)
    assert (status, said["status"]) == (503, "failing")
    assert [fault["part"] for fault in said["faults"]] == ["database", "task.backups"]
    assert asked(LARGE, path="/healthz/live") == (200, {"status": "live"})


def test_a_part_that_cannot_say_how_it_is_is_what_is_wrong() -> None:
    now_ns, error = 10**18, [StorageUnavailable("The database is away.")]
    health = Health(lambda: now_ns)

    def database() -> tuple[Fault, ...]:
        if error:
            raise error[0]
        return ()

    health.register(database, "database")
    health.register(lambda: (SMALL,))
    health.register_progress(lambda: {} if not error else {"rebuilding": len(database())})
    first = health.response("/healthz")
    said = orjson.loads(first.body)
    assert (first.status_code, said["status"]) == (503, "failing")
    assert [fault["part"] for fault in said["faults"]] == ["database", "task.backups"]
    assert said["faults"][0]["code"] == "storage_unavailable"
    assert "pdpp restore" in said["faults"][0]["next_step"]
    assert b"away" not in first.body
    now_ns += 10**9
    assert orjson.loads(health.response("/healthz").body) == said
    error.clear()
    assert health.response("/healthz").status_code == 200


def test_a_defect_of_a_part_is_told_without_its_text() -> None:
    def broken() -> tuple[Fault, ...]:
        raise RuntimeError("secret")

    health = Health(lambda: 10**18)
    health.register(broken, "disk")
    response = health.response("/healthz")
    (fault,) = orjson.loads(response.body)["faults"]
    assert (response.status_code, fault["part"], fault["code"]) == (503, "disk", "internal_error")
    assert b"secret" not in response.body
