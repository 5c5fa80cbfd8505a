"""A live mailbox: how soon an agent sees a new mail, and what an idle account costs."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from bench.site import Site
from demo.agent import over_http
from demo.story import Story
from server.tests.app.http_server.served import until
from server.tests.app.test_mailbox_runs import put, signed_in
from tests.dovecot import PASSWORD, USER, mail_server, needs_dovecot
from tests.journeys.test_attachments import granted

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(1200)]
MAILS, MEDIAN_SECONDS = 20, 10.0
MOST_COMMANDS, MOST_BYTES = 20, 50_000


def pdpp(site: Site, *arguments: str, typed: str = "") -> Any:
    done = subprocess.run(
        site.command("pdpp", *arguments, "--json"),
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_dovecot
async def test_an_agent_sees_a_new_mail_within_ten_seconds(tmp_path: Path) -> None:
    site, took = Site(tmp_path), list[float]()
    with mail_server() as server:
        with signed_in(server) as client:
            put(client, "INBOX", range(1))
        account = ["add-mailbox", USER, "--host", "127.0.0.1", "--port", str(server.port)]
        pdpp(site, "feed", *account, "--every", "1h", typed=f"{PASSWORD}\n")
        pdpp(site, "feed", "run", USER)
        idle = pdpp(site, "feed", "run", USER)["result"]  # it compares more than a poll
        token = granted(site, tmp_path, "Agent", [{"name": "messages"}])
        signed = server.log.count("Login: user")
        with site.serving():
            # it looks, since nothing was looked at in this process, and then waits
            until(lambda: server.log.count("Login: user") >= signed + 1)
            async with over_http(f"{site.origin}/mcp", token, Story()) as agent:
                for number in range(1, MAILS + 1):
                    with signed_in(server) as client:
                        put(client, "INBOX", range(number, number + 1))
                    begun = time.monotonic()
                    asked = {"stream": "messages", "count": "exact", "limit": 1}
                    while True:
                        found = await agent.ask("Did anybody write?", "query_records", asked)
                        if found.structured["data"]["meta"]["count"]["value"] == number + 1:
                            break
                        assert time.monotonic() - begun < 120
                        time.sleep(0.2)
                    took.append(time.monotonic() - begun)
    median = statistics.median(took)
    print(f"a new mail reaches an agent in {median:.1f} s (median of {MAILS})")
    print(f"an idle poll: at most {idle['commands']} commands, {idle['size_bytes']} bytes")
    assert median <= MEDIAN_SECONDS
    assert idle["commands"] <= MOST_COMMANDS
    assert idle["size_bytes"] <= MOST_BYTES
