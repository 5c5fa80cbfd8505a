"""A link that is printed over ssh opens at the computer at which somebody sits."""

import pytest

from personal_server.cli.tunnels import tunnel

HERE = ["198.51.100.7", "50022", "192.0.2.4", "22"]
OTHER_PORT = ["2001:db8::7", "50022", "2001:db8::4", "2222"]


def test_over_ssh_the_command_leads_the_port_here() -> None:
    command = tunnel("http://127.0.0.1:7662", HERE) or ""
    assert command.startswith("ssh -N -L 7662:127.0.0.1:7662 ")
    assert command.endswith("@192.0.2.4")
    assert " -p 2222 " in (tunnel("http://localhost:7800", OTHER_PORT) or "")


@pytest.mark.parametrize("connection", [[], ["nonsense"]])
def test_without_ssh_there_is_none(connection: list[str]) -> None:
    assert tunnel("http://127.0.0.1:7662", connection) is None


def test_a_public_address_needs_none() -> None:
    assert tunnel("https://me.example", HERE) is None
