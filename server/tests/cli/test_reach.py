"""A server is found from elsewhere, through doubles of tunnels and of what hosts are answered.

The doubles are programs on the path, which answer in the shapes that the real ones document; with
the real ones it was tried by nobody here.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from adapter.tests.rs_client.provider import ORIGIN
from personal_server.cli.doctor import HOSTS
from server.tests.cli.owner_desk import OwnerDesk
from server.tests.cli.test_doctor import WholeProvider, by_code

NAME = "me.tail1234.ts.net"
PROXY = {"Handlers": {"/": {"Proxy": "http://127.0.0.1:7662"}}}
STATUS = {"BackendState": "Running", "Self": {"DNSName": f"{NAME}."}}


class Machine:
    """A machine with programs on its path."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.programs, self.home = folder / "programs", folder / "owner"
        self.programs.mkdir()
        self.home.mkdir()
        monkeypatch.setenv("PATH", str(self.programs))
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.setenv("PDPP_DATA_DIR", str(folder / "data"))

    def tailscale(self, status: object, serves: object, begins: object = None) -> None:
        """A double; `begins` is what it serves once it was started."""
        folder, shell = self.programs, shutil.which("sh", path="/bin:/usr/bin")
        for name, said in (("status", status), ("serve", serves), ("begun", begins)):
            (folder / f"{name}.json").write_text(json.dumps(said))
        program = folder / "tailscale"
        program.write_text(
            f"#!{shell}\n"
            f'read_file() {{ while IFS= read -r line || [ -n "$line" ]; do echo "$line"; done; }}\n'
            f'case "$*" in\n'
            f'"status --json") read_file < {folder}/status.json;;\n'
            f'"serve status --json") read_file < {folder}/serve.json;;\n'
            f'*) echo "$*" >> {folder}/started; read_file < {folder}/begun.json > {folder}/x\n'
            f"   read_file < {folder}/x > {folder}/serve.json;;\nesac\n"
        )
        program.chmod(0o755)

    @property
    def started(self) -> list[str]:
        kept = self.programs / "started"
        return kept.read_text().split("\n")[:-1] if kept.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.fixture
def desk(machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> OwnerDesk:
    del machine
    return OwnerDesk(tmp_path, capsys, WholeProvider())


def reached(desk: OwnerDesk, *options: str, code: int = 0) -> dict[str, Any]:
    assert desk.run("reach", "--json", *options) == code, desk.out + desk.err
    return by_code(json.loads(desk.out))


def web(port: int = 443, *, funnel: bool) -> dict[str, object]:
    place = f"{NAME}:{port}"
    return {"Web": {place: PROXY}, "AllowFunnel": {place: True} if funnel else {}}


def test_without_a_tunnel_no_host_is_asked(desk: OwnerDesk) -> None:
    found = reached(desk)
    assert {name: one["state"] for name, one in found.items()} == {
        "tunnel": "hint",
        "public_address": "skipped",
    }


def test_a_tunnel_that_is_not_signed_in_says_so(desk: OwnerDesk, machine: Machine) -> None:
    machine.tailscale({"BackendState": "NeedsLogin"}, {})
    assert "tailscale up" in reached(desk)["tunnel"]["mend"]


def test_a_tunnel_that_leads_nowhere_is_started_only_when_asked(
    desk: OwnerDesk, machine: Machine
) -> None:
    machine.tailscale(STATUS, {}, web(funnel=True))
    assert "tailscale funnel --bg 7662" in reached(desk)["tunnel"]["mend"]
    assert machine.started == []
    found = reached(desk, "--everybody", code=69)
    assert machine.started == ["funnel --bg 7662"]
    assert found["tunnel"]["state"] == "good"
    assert f"PDPP_PUBLIC_URL=https://{NAME}" in found["public_address"]["mend"]


def test_own_devices_are_led_here_without_everybody(desk: OwnerDesk, machine: Machine) -> None:
    machine.tailscale(STATUS, {}, web(funnel=False))
    found = reached(desk, "--own", code=69)
    assert machine.started == ["serve --bg 7662"]
    assert "tailscale funnel" in found["tunnel"]["said"]


def test_hosts_on_the_internet_do_not_reach_an_address_of_own_devices(
    desk: OwnerDesk, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDPP_PUBLIC_URL", ORIGIN)
    place = ORIGIN.removeprefix("https://")
    status = {"BackendState": "Running", "Self": {"DNSName": f"{place}."}}
    machine.tailscale(status, {"Web": {f"{place}:443": PROXY}})
    found = reached(desk)
    assert {found[name]["state"] for name in ("tunnel", "public_address", "Codex")} == {"good"}
    in_cloud = [host.name for host in HOSTS if host.in_cloud]
    assert {found[name]["state"] for name in in_cloud} == {"hint"}


def test_claude_on_the_web_reaches_no_other_port(desk: OwnerDesk, machine: Machine) -> None:
    machine.tailscale(STATUS, web(8443, funnel=True))
    assert reached(desk, code=69)["tunnel"]["state"] == "hint"


def test_the_public_address_is_asked_as_each_host_does(
    desk: OwnerDesk, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDPP_PUBLIC_URL", ORIGIN)
    config = machine.home / ".cloudflared" / "config.yml"
    config.parent.mkdir()
    config.write_text(
        "tunnel: pdpp\ningress:\n  - hostname: other.example\n    service: http://127.0.0.1:80\n"
        "  - hostname: me.example\n    service: http://127.0.0.1:7662\n"
        "  - service: http_status:404\n"
    )
    (machine.programs / "cloudflared").write_text("#!/bin/sh\n")
    (machine.programs / "cloudflared").chmod(0o755)
    found = reached(desk)
    assert {"ChatGPT", "Codex", "public_address", "reachable"} <= set(found)
    assert {one["state"] for one in found.values()} == {"good"}
    desk.provider.down = True
    assert reached(desk, code=69)["reachable"]["state"] == "wrong"
