"""What `/metrics` says of a server that was used, who may read it, and what it never says."""

from __future__ import annotations

import re
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from pdpp_kernel.errors import PersonalServerError
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.settings import InvalidSetting
from personal_server.app.connections import Connections
from personal_server.app.figures import KINDS, ServerFigures
from personal_server.app.tallies import Tallies
from personal_server.cli.serve import figures_listener
from personal_server.domain.stored import CollectionRun, RunStatus
from personal_server.settings import Settings, from_env
from server.tests.app.http_server.served import PAYMENTS, SECONDS, ServedProcess, served_process
from server.tests.app.whole import whole
from tests.ports import free_port

TOKEN = "f" * 40
DOORS = {"network", "in_process"}
SURFACES = {"v1", "mcp", "owner", "oauth"}


@contextmanager
def watched(folder: Path, **environ: str) -> Generator[tuple[ServedProcess, str]]:
    """A server, and the address of its figures."""
    bound = f"127.0.0.1:{free_port()}"
    with served_process(folder, PDPP_METRICS_BIND=bound, **environ) as served:
        yield served, f"http://{bound}/metrics"


def samples(text: str) -> list[Sample]:
    return [each for family in text_string_to_metric_families(text) for each in family.samples]


def values(text: str, name: str, **labels: str) -> list[float]:
    """The values of a figure with these labels, whatever its others are."""
    return [
        each.value
        for each in samples(text)
        if each.name == name and labels.items() <= each.labels.items()
    ]


def every_code(kind: type[PersonalServerError] = PersonalServerError) -> Iterator[str]:
    yield kind.code
    for each in kind.__subclasses__():
        yield from every_code(each)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[ServedProcess, str, str]]:
    """A server that was asked for this and that, its figures, and where they are."""
    with watched(tmp_path_factory.mktemp("watched")) as (served, address):
        for path, token in (
            (PAYMENTS, served.client_token),
            (PAYMENTS, "pdpp_at_" + "x" * 43),
            ("/v1/streams/no-such-stream-of-ada/records", served.client_token),
            ("/v1/streams/transactions/records?filter[secret_field]=ada", served.client_token),
            ("/nowhere/ada", ""),
            ("/owner", ""),
            ("/healthz", ""),
        ):
            served.get(path, token)
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        httpx2.post(
            f"{served.origin}/mcp",
            json={**asked, "params": {"name": "search", "arguments": {"query": "ada"}}},
            headers={
                "Authorization": f"Bearer {served.client_token}",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2025-11-25",
            },
            timeout=SECONDS,
        )
        yield served, httpx2.get(address).text, address


def test_requests_are_counted_by_the_pattern_of_their_route(
    used: tuple[ServedProcess, str, str],
) -> None:
    _, text, _ = used
    route = "GET /v1/streams/{stream}/records"
    assert values(text, "pdpp_requests_total", route=route, status="200") == [1]
    assert values(text, "pdpp_requests_total", route=route, status="401") == [1]
    assert values(text, "pdpp_requests_total", route="none", status="404") == [1]
    assert values(text, "pdpp_request_duration_seconds_count", route=route) == [4]
    assert values(text, "pdpp_request_duration_seconds_bucket", route=route, le="+Inf") == [4]
    assert values(text, "pdpp_errors_total", code="invalid_token") == [1]
    assert values(text, "pdpp_errors_total", code="grant_stream_not_allowed") == [1]


def test_a_tool_is_counted_and_so_is_what_it_reads(used: tuple[ServedProcess, str, str]) -> None:
    _, text, _ = used
    assert sum(values(text, "pdpp_tool_calls_total", tool="search")) == 1
    assert values(text, "pdpp_requests_total", route="POST /mcp", door="network") == [1]
    assert sum(values(text, "pdpp_requests_total", door="in_process")) >= 1


def test_sizes_tasks_and_connections_are_told(used: tuple[ServedProcess, str, str]) -> None:
    served, text, _ = used
    size = served.settings.database_path.stat().st_size
    assert values(text, "pdpp_database_bytes") == [size]
    assert values(text, "pdpp_disk_free_bytes")[0] > 0
    assert values(text, "pdpp_journal_bytes")[0] >= 0
    assert values(text, "pdpp_task_failures", task="sweeping") == [0]
    assert values(text, "pdpp_connections_open") == [0]
    assert values(text, "pdpp_backup_timestamp_seconds") == [0]
    assert values(text, "pdpp_proven_restore_timestamp_seconds") == [0]
    assert values(text, "process_resident_memory_bytes")[0] > 0
    assert set(values(text, "pdpp_unread")) == {0}


def test_every_label_is_a_word_of_a_closed_list(used: tuple[ServedProcess, str, str]) -> None:
    _, text, _ = used
    labels = {
        ("fault" if each.name == "pdpp_fault" and name == "code" else name, value)
        for each in samples(text)
        for name, value in each.labels.items()
    }
    closed = {
        "door": DOORS,
        "surface": SURFACES,
        "code": set(every_code()),
        "tool": {"search"},
        "outcome": {"ok", *every_code()},
        "kind": KINDS | {"other", "read", "write", "call"},
        "serving": {"true", "false"},
    }
    for name, value in labels:
        match name:
            case "route":
                assert value == "none" or re.fullmatch(r"[A-Z]+ (/[a-z_.0-9{}\-~]*)+", value)
            case "status" | "ordinal":
                assert value.isdecimal()
            case "le":
                assert float(value)
            case "version" | "task" | "part" | "group" | "fault":
                assert re.fullmatch(r"[a-z0-9_.]+", value)
            case _:
                assert value in closed[name]


def test_nothing_of_records_and_their_readers_is_told(
    tmp_path: Path, used: tuple[ServedProcess, str, str]
) -> None:
    served, text, _ = used
    told = text.lower()
    for word in ("ada", "transactions", "secret_field", "nowhere", "iban", served.client_token):
        assert word.lower() not in told
    with whole(tmp_path) as each:  # a store with the same records names what must not be told
        with each.server.stores.records.snapshot() as snapshot:
            for connection in snapshot.connections():
                assert connection.connection_id.lower() not in told
                assert (connection.display_name or "-none-").lower() not in told
                assert connection.source_id.lower() not in told
            streams = {stream.stream for stream in snapshot.stored_streams()}
        label_values = {value for one in samples(text) for value in one.labels.values()}
        assert not streams & label_values


def test_imports_are_told_by_kind_and_number(tmp_path: Path) -> None:
    with whole(tmp_path) as each:
        stores, now_ns = each.server.stores, each.clock()
        with stores.records.snapshot() as snapshot:
            first, *_ = snapshot.connections()
        run = CollectionRun("run_1", RunStatus.SUCCEEDED, now_ns)
        stores.records.record_run(first.connection_id, run)
        registry = CollectorRegistry()
        registry.register(
            ServerFigures(each.server, Tallies(None, each.server, Connections(16, 30)))
        )
        text = generate_latest(registry).decode()
    told = values(text, "pdpp_import_timestamp_seconds")
    assert sorted(told) == [0, 0, now_ns / 10**9]
    labels = [s.labels for s in samples(text) if s.name == "pdpp_import_timestamp_seconds"]
    for kind in {one["kind"] for one in labels}:
        ordinals = sorted(int(one["ordinal"]) for one in labels if one["kind"] == kind)
        assert ordinals == list(range(1, len(ordinals) + 1))


def test_the_listener_of_the_server_has_no_figures(used: tuple[ServedProcess, str, str]) -> None:
    served, _, address = used
    assert served.get("/metrics").status_code == 404
    assert served.get("/metrics", served.owner_token).status_code == 404
    assert httpx2.get(address.removesuffix("/metrics") + "/healthz").status_code == 404
    assert httpx2.post(address).status_code == 404


def test_a_page_that_comes_by_another_name_is_sent_away(
    used: tuple[ServedProcess, str, str],
) -> None:
    _, _, address = used
    for host in ("evil.example", "evil.example:9662", "localhost.evil.example", ""):
        answer = httpx2.get(address, headers={"Host": host})
        assert answer.status_code in (400, 403)
        assert "pdpp_" not in answer.text


def test_with_a_token_nobody_reads_without_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with watched(tmp_path, PDPP_METRICS_TOKEN_FILE=str(tmp_path / "token")) as (served, address):
        for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": f"Basic {TOKEN}"}):
            assert httpx2.get(address, headers=headers).status_code == 401
        owner = {"Authorization": f"Bearer {served.owner_token}"}
        assert httpx2.get(address, headers=owner).status_code == 401
        answer = httpx2.get(address, headers={"Authorization": f"Bearer {TOKEN}"})
        assert "pdpp_requests_total" in answer.text


def test_an_address_that_others_reach_needs_a_token(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting):
        from_env({"PDPP_METRICS_BIND": "0.0.0.0:9662"})
    with pytest.raises(InvalidSetting):
        from_env({"PDPP_METRICS_BIND": "127.0.0.1:7662"})
    settings = from_env(
        {"PDPP_METRICS_BIND": "[::]:9662", "PDPP_METRICS_TOKEN_FILE": str(tmp_path / "token")}
    )
    assert settings.metrics_bind == ("::", 9662)


def test_without_the_setting_nothing_listens() -> None:
    with figures_listener(Settings()) as listener:
        assert listener is None


def test_a_busy_port_is_told_before_anything_is_opened() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = Settings(metrics_bind=("127.0.0.1", taken.getsockname()[1]))
        with pytest.raises(CommandError) as raised, figures_listener(settings):
            pass
        assert raised.value.failure.code == "unavailable"
