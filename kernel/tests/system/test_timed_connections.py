"""Who sends a byte now and then is not waited for."""

from __future__ import annotations

import socket
import ssl

from pdpp_kernel.system.timed_connections import OPENED, SECURED, TimedConnection, cut_after


class Stream:
    """What a client of HTTP tells of its connection."""

    def __init__(self, wire: socket.socket) -> None:
        self._wire = wire

    def get_extra_info(self, name: str) -> socket.socket | None:
        return self._wire if name == "socket" else None


def test_what_takes_too_long_is_cut() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, cut_after(ours, 0.05):
        theirs.sendall(b"a")
        assert ours.recv(1) == b"a"
        assert ours.recv(1) == b""


def test_what_is_done_in_time_goes_on() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with cut_after(ours, 60):
            theirs.sendall(b"a")
        assert ours.recv(1) == b"a"
        theirs.sendall(b"b")
        assert ours.recv(1) == b"b"


def test_what_was_wrapped_meanwhile_is_cut() -> None:
    ours, theirs = socket.socketpair()
    timed = TimedConnection()
    timed.begin(0.05)
    timed.trace("connection.connect_tcp.started", {})
    timed.trace(OPENED, {"return_value": Stream(ours)})
    with socket.socket(fileno=ours.detach()), theirs:  # as TLS does
        assert theirs.recv(1) == b""
        timed.end()


def test_a_connection_with_tls_is_cut_too() -> None:
    ours, theirs = socket.socketpair()
    timed = TimedConnection()
    timed.begin(0.05)
    timed.trace(OPENED, {"return_value": Stream(ours)})
    context = ssl.create_default_context()
    with theirs, context.wrap_socket(ours, server_hostname="a", do_handshake_on_connect=False) as t:
        timed.trace(SECURED, {"return_value": Stream(t)})
        assert theirs.recv(1) == b""
        timed.end()


def test_a_connection_of_before_is_cut_too_and_is_not_kept_open() -> None:
    ours, theirs = socket.socketpair()
    timed = TimedConnection()
    timed.begin(60)
    timed.trace(SECURED, {"return_value": Stream(ours)})
    timed.end()
    with theirs:
        with ours:
            timed.begin(0)
            assert ours.recv(1) == b""
            timed.end()
        assert theirs.recv(1) == b""
