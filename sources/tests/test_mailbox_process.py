"""What a connection to a mail server may do while this side waits."""

from __future__ import annotations

import socket

from pdpp_sources import mailbox_process
from pdpp_sources.mailbox_process import (
    LARGEST_ANSWER_BYTES,
    SEARCH_SILENCE_SECONDS,
    SILENCE_SECONDS,
    WireCount,
)


def test_silence_counts_while_an_answer_is_due() -> None:
    now = 0.0
    count = WireCount(clock=lambda: now)
    now += 10 * SEARCH_SILENCE_SECONDS  # mails are imported meanwhile
    assert (count.silent_seconds, count.is_gone()) == (0.0, False)
    count.begin_answer(SILENCE_SECONDS, 120)
    now += SILENCE_SECONDS - 1
    assert not count.is_gone()
    count.hear(1)
    now += SILENCE_SECONDS - 1
    assert (count.silent_seconds, count.is_gone()) == (SILENCE_SECONDS - 1, False)
    now += 2
    assert count.is_gone()
    count.end_answer()
    assert not count.is_gone()


def test_what_a_server_says_unasked_is_no_answer_that_takes_too_long() -> None:
    now = 0.0
    count = WireCount(clock=lambda: now)
    count.begin_answer(SILENCE_SECONDS, 120)
    count.begin_command()
    count.hear(100)
    count.end_answer()
    now += 600  # mails are imported meanwhile
    count.hear(100)
    assert not count.is_beyond()
    count.begin_answer(SILENCE_SECONDS, 120)
    now += 600
    assert count.is_beyond()
    count.end_answer()
    count.hear(LARGEST_ANSWER_BYTES)
    assert count.is_beyond()


def test_a_machine_that_is_gone_is_noticed_however_long_a_server_may_be_silent() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as wire,
        mailbox_process.mailbox_process(wire, WireCount()),
    ):
        assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, between, count = (
            wire.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
            for name in mailbox_process.KEEPALIVE
            if hasattr(socket, name)
        )
    assert idle + between * count <= SILENCE_SECONDS


def test_a_connection_that_has_ended_before_it_is_used_is_closed_without_a_fault() -> None:
    """Some systems refuse to set anything of one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wire = _Ended(fileno=socket.create_connection(listener.getsockname()).detach())
        with mailbox_process.mailbox_process(wire, WireCount()):
            pass
    assert wire.fileno() == -1


class _Ended(socket.socket):
    def setsockopt(self, *_: object) -> None:
        raise OSError
