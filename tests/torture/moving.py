"""A server moved to PostgreSQL and back, killed on the way, with tokens and a follower that go on.

    python -m tests.torture.moving [RECORDS]

The demo's mailbox and bank statement are imported beside so many generated records.  Prints how
long each way took and whether the digests of all tables are equal, and ends with 1 if not.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from bench.filling import fill
from bench.samples import mailbox, statement
from personal_server.app.owner_store import open_owner_store
from server.tests.app.http_server.served import command, mint_owner_token
from tests.postgresql import schema, server
from tests.torture.tormented import Tormented

BACK = "back"
Timed = tuple[dict[str, str], float]


def places(server_: Tormented) -> dict[str, str]:
    """The environment of a command beside a server."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PDPP_")}  # noqa: TID251 (a child's)
    return {**kept, "PDPP_DATA_DIR": str(server_.folder / "data"), **server_.environ}


def sealed(server_: Tormented) -> str:
    """Let a follower come up to now, on a running server; its bookmark."""
    server_.start_again()
    server_.follower.follow(server_)
    assert server_.read(), server_.faults
    server_.stop()
    return server_.follower.bookmark


def goes_on(before: Tormented, folder: Path, **environ: str) -> int:
    """The same follower and tokens on another place; how many records it is told of."""
    there = Tormented(folder, {**environ, "PDPP_PUBLIC_URL": before.origin}, port=before.port)
    # a move may take longer than an access token lives: a host renews its own
    there.refresh_token = before.refresh_token
    there.follower.bookmark = before.follower.bookmark
    with open_owner_store(there.settings) as store:
        there.owner_token = mint_owner_token(store)
    there.start()
    try:
        assert there.refresh(), there.faults
        assert there.read(), there.faults
        assert there.ingest(), there.faults
        there.follower.follow(there)
        return len(there.follower.copy)
    finally:
        there.stop()


def moved(
    server_: Tormented, to: str, *more: str, killed: bool = False
) -> tuple[dict[str, str], float]:
    """Move, perhaps with a kill after the first stream; digests and seconds."""
    asked = command("move", "--to", to, "--json", *more)
    if killed:
        begun = subprocess.Popen(asked, env=places(server_), stderr=subprocess.PIPE, text=True)
        for line in begun.stderr or ():
            if "/" in line:
                break
        begun.send_signal(signal.SIGKILL)
        begun.wait()
    began = time.monotonic()
    done = subprocess.run(asked, env=places(server_), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["tables"], time.monotonic() - began


def main() -> int:
    """Fill, move there, move back."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    say = Console(highlight=False).print
    with tempfile.TemporaryDirectory(prefix="pdpp-moving-") as made, schema() as name:
        folder = Path(made)
        environ = {"PDPP_DATABASE_URL": server().url(), "PDPP_DATABASE_SCHEMA": name}
        here = Tormented(folder, {})
        here.furnish()
        for sample, account in ((mailbox(), "Mailing lists"), (statement(), "Checking account")):
            here.told("import", str(sample.path), "--connection", account)
        filled = fill(folder / "data", records, Console(stderr=True, quiet=True))
        bookmark = sealed(here)
        size = here.settings.database_path.stat().st_size
        say(f"{filled.records:,} generated records and the demo's archive, {size / 1e6:,.0f} MB")
        before = here.settings.database_path.read_bytes()[:4_096], size
        digests, seconds = moved(here, server().url(), "--schema", name, killed=True)
        say(f"to PostgreSQL, killed after the first stream and repeated: {seconds:,.0f} s")
        after = here.settings.database_path.read_bytes()[:4_096]
        assert (after, here.settings.database_path.stat().st_size) == before, "source was touched"
        there = Tormented(folder, environ)
        back = folder / BACK
        returned, seconds = moved(there, str(back / "data"))
        say(f"back into a file: {seconds:,.0f} s")
        differing = {each for each in digests if digests[each] != returned.get(each)}
        say(f"{len(digests)} tables, {len(differing)} differ: {sorted(differing)}")
        assert bookmark == here.follower.bookmark
        say(f"on PostgreSQL the follower is told of {goes_on(here, folder, **environ)} new records")
        say(f"on the file that came back of {goes_on(here, back)}")
        shutil.rmtree(back)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
