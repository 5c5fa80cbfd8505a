"""`pdpp doctor`: whether a server answers, and what it says needs care.

Source: docs/contract/resource-server.md 1.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from pdpp_mcp_server.rs_client.credentials import CredentialError
from pdpp_mcp_server.rs_client.discovery import ProviderExchange
from pdpp_mcp_server.rs_client.json_values import as_object
from personal_server.cli.findings import Finding, good, wrong
from personal_server.semantics.chosen import (
    GET_PACKAGES,
    missing_packages,
    needed_by,
    read_choice,
)
from personal_server.settings import Settings

REACHABLE = ("reachable", "Reachable")
PROCESSES = ("processes", "Processes")
MEANING = ("search_by_meaning", "Search by meaning")
HEALTH, PROGRESS = ("health", "Health"), ("progress", "In progress")
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "::1": "[::1]"}  # noqa: S104 (compared)


def server_findings(exchange: ProviderExchange, settings: Settings) -> Iterator[Finding]:
    """The faults of the server of this machine, and whether it searches by meaning."""
    host = _EVERYWHERE.get(settings.bind_host, settings.bind_host)
    address = f"http://{host}:{settings.bind_port}"
    try:
        yield from health_findings(exchange, address)
    except CredentialError:
        yield wrong(
            *REACHABLE,
            f"the server does not run: nothing answers at {address}",
            (
                "Start the server with `pdpp serve`, or permanently with `pdpp service "
                "install`. PDPP_BIND sets the address."
            ),
        )
    yield meaning_finding(settings)


def meaning_finding(settings: Settings) -> Finding:
    """Whether records are found by meaning, or how that is to be had."""
    chosen = read_choice(settings.data_dir)
    if chosen is not None and not set(missing_packages()) & set(needed_by(chosen)):
        return good(
            *MEANING,
            (f"on, with the model {chosen.name}; `pdpp semantic status` shows the progress"),
        )
    step = "pdpp semantic install" if chosen is None and not missing_packages() else GET_PACKAGES
    return good(*MEANING, f"search by meaning is off; to turn it on: {step}")


def health_findings(exchange: ProviderExchange, origin: str) -> Iterator[Finding]:
    """Whether a personal server answers, and each fault it names.  Raises: ProviderUnavailable."""
    reply = exchange.get(f"{origin}/healthz")
    if reply.text("status") not in ("ok", "degraded", "failing"):
        yield wrong(
            *REACHABLE,
            (
                f"the address answers /healthz with status {reply.status}, so no "
                "personal server runs there"
            ),
            "Check the address and port, and that `pdpp serve` runs.",
        )
        return
    yield good(*REACHABLE)
    workers = [as_object(each) for each in cast("list[object]", reply.body.get("workers") or [])]
    if workers:
        used = [round(float(str(each.get("memory_bytes", 0))) / 1e6) for each in workers]
        yield good(
            *PROCESSES,
            (f"{len(used)} processes serve requests; memory in MB: {', '.join(map(str, used))}"),
        )
    for part, done in as_object(reply.body.get("progress")).items():
        yield good(f"{PROGRESS[0]}.{part}", f"{PROGRESS[1]}: {part}", f"{done} % done")
    faults = [as_object(each) for each in cast("list[object]", reply.body.get("faults") or [])]
    if not faults:
        yield good(*HEALTH)
    for fault in faults:
        part, code, since, step = (
            str(fault.get(name, "")) for name in ("part", "code", "since", "next_step")
        )
        yield wrong(
            f"{HEALTH[0]}.{part}", f"{HEALTH[1]}: {part}", f"{code} since {since}", step, code
        )
