"""What `pdpp status` says of the server of this machine."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from pdpp_kernel.values import NANOSECONDS
from pdpp_mcp_server.commands.tables import minute
from pdpp_mcp_server.rs_client.credentials import ProviderUnavailable
from pdpp_mcp_server.rs_client.discovery import JsonResponse
from personal_server.app.feeding import feed_store
from personal_server.app.stores import open_stores
from personal_server.cli.server_status import print_server
from personal_server.feeds.feed_sentences import what_to_do
from personal_server.settings import Settings
from server.tests.feeds.test_feed_states import NOW, a_feed


class Answering:
    """A server that is well, or none."""

    def __init__(self, *, runs: bool) -> None:
        self.runs = runs

    def get(self, url: str) -> JsonResponse:
        del url
        if not self.runs:
            raise ProviderUnavailable("Nobody answers.", "Start it.")
        return JsonResponse(200, {"status": "ok"}, {})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = Settings(data_dir=tmp_path / "data")
    with open_stores(made, serving=False):
        pass
    return made


@pytest.mark.parametrize("runs", [True, False])
def test_it_names_what_is_kept_and_whether_it_runs(settings: Settings, *, runs: bool) -> None:
    out = Console(width=100, record=True, file=io.StringIO())
    print_server(Answering(runs=runs), settings, out)  # type: ignore[arg-type]
    lines = [line.split(maxsplit=1) for line in out.export_text().splitlines() if line.strip()]
    facts = {line[0]: line[1] for line in lines[1:] if len(line) == 2}
    assert facts["records"].startswith("0 records in 0 accounts")
    assert "no app" in facts["access"]
    assert "pdpp backup" in facts["backup"]
    assert "pdpp semantic install" in facts["search"]
    assert ("server" in facts, "attention" in facts) == (runs, not runs)


def test_it_names_the_feeds_that_need_their_owner(settings: Settings) -> None:
    with open_stores(settings, serving=False) as stores:
        feeds = feed_store(stores)
        feeds.add_feed(a_feed(state="needs_you", code="account_gone", failures=1))
        feeds.add_feed(a_feed(feed_id="fee_2", name="Notes", place="/notes", succeeded_at_ns=NOW))
    out = Console(width=200, record=True, file=io.StringIO())
    print_server(Answering(runs=True), settings, out)  # type: ignore[arg-type]
    shown = out.export_text()
    assert "Downloads: " + what_to_do("account_gone") in shown
    assert shown.count("stale feed") == 1
    assert "Downloads: needs_you" in shown


def test_it_tells_how_current_each_feed_is(settings: Settings) -> None:
    with open_stores(settings, serving=False) as stores:
        now = stores.clock()
        at = {"succeeded_at_ns": now - 7_200 * NANOSECONDS, "due_at_ns": now}
        row = a_feed(state="resting", failures=1, failing_since_ns=now, **at)
        feed_store(stores).add_feed(row)
    out = Console(width=200, record=True, file=io.StringIO())
    print_server(Answering(runs=True), settings, out)  # type: ignore[arg-type]
    shown = out.export_text()
    when = minute(now)
    assert "Downloads: resting" in shown
    assert shown.count(minute(at["succeeded_at_ns"])) == shown.count("2 h") == 1
    assert shown.count(when) == 2  # the next run, and since when it fails
    assert "stale feed" not in shown
