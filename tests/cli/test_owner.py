from __future__ import annotations

from typing import Any

from personal_server.operations.signing_in import Visitor


def test_a_printed_link_signs_in_once(terminal: Any) -> None:
    assert terminal.run("owner", "link") == 0
    link = terminal.out.strip()
    assert link.startswith("http://127.0.0.1:7662/owner/enter?t=pdpp_ol_")
    sign_in = terminal.house.store.sign_in
    assert sign_in.session(sign_in.enter_by_link(link.partition("t=")[2], Visitor())) is not None


def test_the_password_is_read_from_standard_input_without_a_terminal(terminal: Any) -> None:
    terminal.types(None)
    terminal.patch.setattr("sys.stdin.readline", lambda: "correct horse battery\n")
    assert terminal.run("owner", "password") == 0
    sign_in = terminal.house.store.sign_in
    assert sign_in.enter_by_password("correct horse battery", Visitor())
    assert "correct" not in terminal.out + terminal.err


def test_a_short_password_is_usage(terminal: Any) -> None:
    terminal.patch.setattr("sys.stdin.readline", lambda: "short\n")
    assert terminal.run("owner", "password") == 64
    assert not terminal.house.store.sign_in.has_password()


def test_signing_out_ends_every_session_and_must_be_meant(terminal: Any) -> None:
    sign_in = terminal.house.store.sign_in
    cookie = sign_in.enter_by_link(sign_in.make_link(), Visitor())
    assert terminal.run("owner", "sign-out") == 64
    assert sign_in.session(cookie) is not None
    assert terminal.run("owner", "sign-out", "--all") == 0
    assert sign_in.session(cookie) is None
