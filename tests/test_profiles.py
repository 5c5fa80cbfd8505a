"""Samples of a profiler are folded into parts, by the names of this program and of older ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.profiles import FEWEST_SAMPLES, Profile
from bench.samples_by_part import JSON, LOOP, MODULES, OTHER, PARTS, UNSEEN, Folded, frame_of
from pages.parts import PACKAGES

LOOPED = "<module> (pdpp:8);Handle._run (asyncio/events.py:80)"
ROUTED = "Application.__call__ (personal_server/web/application.py:60)"


@pytest.mark.parametrize(
    ("stack", "part"),
    [
        ("H11Protocol.data_received (uvicorn/protocols/http/h11_impl.py:9)", "frame of HTTP"),
        (f"{ROUTED};validate (h11/_util.py:87)", "frame of HTTP"),
        (f"{ROUTED};run_sync (anyio/to_thread.py:40)", LOOP),
        (f"{ROUTED};measuring (personal_server/web/traffic.py:65)", "telemetry, log"),
        (f"{ROUTED};validate_python (pydantic/main.py:1)", "SDK of MCP, pydantic"),
        *(
            (f"{ROUTED};{function}", part)
            for place in ("pdpp_mcp_server", "personal_server/mcp_adapter")
            for function, part in (
                (f"Fitting.room ({place}/faces/page_layout.py:1)", "adapter: fitting and faces"),
                (f"page_of ({place}/tools/pages.py:1)", "adapter: fitting and faces"),
                (f"fetch ({place}/tools/fetch.py:1)", "adapter: other"),
                (f"get ({place}/metrics.py:1)", "telemetry, log"),
            )
        ),
        *(
            (f"{ROUTED};{function}", "adapter: its client of /v1")
            for function in (
                "get (pdpp_mcp_server/rs_client/http.py:1)",
                "get (personal_server/rs_client/http.py:1)",
                "send (httpx2/_client.py:1)",
            )
        ),
        (f"{ROUTED};parse_json (pdpp_mcp_server/rs_client/json_values.py:75)", JSON),
        (f"{ROUTED};loads (json/__init__.py:1)", JSON),
        (f"{ROUTED};stems (personal_server/domain/word_forms.py:59)", "words, stems, languages"),
        (f"{ROUTED};of (personal_server/domain/grant.py:5)", "enforcement, grants"),
        (
            f"{ROUTED};rows (personal_server/storage/sql/reads/pages.py:5)",
            "storage: rows, statements",
        ),
        (f"{ROUTED};rows (personal_server/storage/sqlite/database.py:5)", "SQLite"),
        (f"{ROUTED};ingest (personal_server/collecting/ingest.py:5)", "ingest"),
        # what the standard library or a made method does is of whoever called it
        (
            f"{ROUTED};page (personal_server/reading/records.py:7);"
            "cached_property.__get__ (functools.py:997);__init__ (<string>:3)",
            "reading",
        ),
        ("<module> (pdpp:8);run (cyclopts/core.py:1)", OTHER),
    ],
)
def test_a_sample_is_of_the_innermost_part(stack: str, part: str) -> None:
    folded = Folded()
    folded.add([f"thread (7): MainThread;{stack} 3\n"], (), {"7": 12.0}, 12.0)
    assert {name: ms for name, ms in folded.spent_ms.items() if ms} == {part: 12.0}
    assert (folded.samples, folded.share(part)) == (3, 1.0)


@pytest.mark.parametrize(
    "frame",
    [
        "EpollSelector.select (selectors.py:468)",
        "Condition.wait (threading.py:324)",
        "_SelectorSocketTransport.write (asyncio/selector_events.py:1057)",
        "_worker (concurrent/futures/thread.py:81)",
    ],
)
def test_what_waits_or_wakes_another_counts_for_nothing(frame: str) -> None:
    folded = Folded()
    folded.add([f"thread (7): MainThread;{LOOPED};{frame} 5\n"], (), {"7": 2.0}, 2.0)
    assert (folded.samples, folded.waiting, folded.share(UNSEEN)) == (0, 5, 1.0)


def test_a_thread_counts_for_what_it_spent_and_not_for_its_samples() -> None:
    lines = [
        "thread (7): MainThread;f (personal_server/web/application.py:1) 10\n",
        "thread (8): disclosures;f (personal_server/storage/sqlite/database.py:1) 90\n",
        "thread (9): gone;f (personal_server/reading/records.py:1) 5\n",
    ]
    folded = Folded()
    folded.add(lines, (), {"7": 30.0, "8": 10.0}, 50.0)
    shares = {part: folded.share(part) for part in PARTS if folded.share(part)}
    assert shares == {"frame of HTTP": 0.6, "SQLite": 0.2, UNSEEN: 0.2}


def test_json_in_c_is_told_by_the_line_that_calls_it(tmp_path: Path) -> None:
    file = tmp_path / "personal_server" / "storage" / "rows.py"
    file.parent.mkdir(parents=True)
    file.write_text("def _object(text):\n    return orjson.loads(text)\n", encoding="utf-8")
    folded = Folded()
    lines = [f"thread (7): M;_object (personal_server/storage/rows.py:{n}) 1\n" for n in (1, 2)]
    folded.add(lines, (tmp_path,), {"7": 1.0}, 1.0)
    assert (folded.share(JSON), folded.share("storage: rows, statements")) == (0.5, 0.5)


def test_the_rooms_that_calls_go_through_belong_to_parts() -> None:
    rooms = [
        *("web", "hosted_mcp", "resource_server", "enforcement", "granting", "domain", "reading"),
        *("storage", "storage/sqlite", "collecting", "app"),
    ]
    for room in rooms:
        assert (PACKAGES["personal_server"] / room).is_dir(), room
        frame = frame_of(f"f (personal_server/{room}/module.py:1)")
        assert frame is not None
        assert frame.part in MODULES, room


@pytest.mark.parametrize(
    ("samples", "unread", "whole_ms", "faults"),
    [
        (FEWEST_SAMPLES, 0, 10.0, 0),
        (FEWEST_SAMPLES - 1, 0, 10.0, 1),
        (FEWEST_SAMPLES, FEWEST_SAMPLES, 10.0, 1),
        (FEWEST_SAMPLES, 0, 20.0, 1),
    ],
)
def test_a_sample_that_tells_nothing_is_named(
    samples: int, unread: int, whole_ms: float, faults: int
) -> None:
    profile = Profile(Folded(unread=unread))
    line = f"thread (7): M;f (personal_server/web/application.py:1) {samples}\n"
    profile.folded.add([line], (), {"7": 10.0}, whole_ms)
    assert len(profile.faults) == faults
