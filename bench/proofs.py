"""What a proof of possession costs a read: DPoP beside bearer, in turn, in one run.

Usage: python -m bench.proofs [READS]

READS (2,000) of each kind, in blocks of 50 over one connection.  Latency has the signing of the
client in it; processor time is the server's alone, which a busy machine does not stretch.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter_ns
from urllib.parse import urlencode

from rich.console import Console

from bench.filling import fill
from bench.idle import Idleness
from bench.site import Site
from pdpp_mcp_server.rs_client.proof_keys import ProofKey

RECORDS, BLOCK = 10_000, 50
PATH = "/v1/streams/transactions/records?limit=20"

Present = Callable[[], Mapping[str, str]]


def main(reads: int = 2_000) -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="bench-proofs-") as name:
        site, key = Site(Path(name)), ProofKey()
        fill(site.data_dir, RECORDS, Console(stderr=True))
        bearer, _ = site.grant("bearer", "--source", "bench_bank")
        _, cache = site.grant("key", "--source", "bench_bank")
        with site.serving() as running:
            connection = HTTPConnection("127.0.0.1", site.port)
            bound, url = _bound(connection, site, cache, key), f"{site.origin}{PATH}"
            kinds: dict[str, Present] = {
                "bearer": lambda: {"Authorization": f"Bearer {bearer}"},
                "DPoP": lambda: key.headers("GET", url, bound),
            }
            taken = {kind: list[int]() for kind in kinds}
            used = dict.fromkeys(kinds, 0.0)
            for _ in range(reads // BLOCK):
                for kind, present in kinds.items():
                    before = Idleness.of(running).processor_seconds
                    taken[kind] += [_read(connection, present) for _ in range(BLOCK)]
                    used[kind] += Idleness.of(running).processor_seconds - before
            resident = running.resident_bytes / 2**20
    medians = {kind: statistics.median(times) / 1e6 for kind, times in taken.items()}
    costs = {kind: 1e3 * seconds / reads for kind, seconds in used.items()}
    print(f"{'':8} {'p50 ms':>8} {'server processor ms':>20}")
    for kind in kinds:
        print(f"{kind:8} {medians[kind]:8.2f} {costs[kind]:20.2f}")
    ratios = [told["DPoP"] / told["bearer"] for told in (medians, costs)]
    print(f"{'ratio':8} {ratios[0]:8.2f} {ratios[1]:20.2f}")
    print(f"{resident:.0f} MB resident at the end")
    return 0


def _bound(connection: HTTPConnection, site: Site, cache: Path, key: ProofKey) -> str:
    """The token of a grant that began with none, bound to a key by its first refresh."""
    [file] = (cache / "clients").glob("*.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    form = {
        "grant_type": "refresh_token",
        "refresh_token": document["credential"]["refresh_token"],
        "client_id": document["client"]["client_id"],
    }
    while True:
        proof = key.proof("POST", f"{site.origin}/oauth/token")
        headers = {"Content-Type": "application/x-www-form-urlencoded", "DPoP": proof}
        connection.request("POST", "/oauth/token", urlencode(form), headers)
        answer = connection.getresponse()
        body = json.loads(answer.read())
        if answer.status == 200:
            return str(body["access_token"])
        if not key.learn(answer.status, {n.lower(): v for n, v in answer.getheaders()}):
            raise SystemExit(f"no bound token: {body['error']}")


def _read(connection: HTTPConnection, present: Present) -> int:
    begin = perf_counter_ns()
    connection.request("GET", PATH, headers=dict(present()))
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise SystemExit(f"a read was answered {answer.status}")
    return perf_counter_ns() - begin


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
