"""A token as a request presents it."""

from __future__ import annotations

from personal_server.domain.possession import PresentedToken, SentProof


def test_neither_token_nor_proof_is_written_into_a_log() -> None:
    proof = SentProof(("eyJhbGciOiJFUzI1NiJ9",), "GET", "https://example.org/v1")
    presented = repr(PresentedToken("pdpp_at_secret", proof))
    assert "secret" not in presented
    assert "eyJ" not in presented
    assert presented.startswith("PresentedToken")


def test_two_requests_that_look_alike_are_told_apart_by_their_sending() -> None:
    one, other = (SentProof(("p",), "GET", "https://example.org/v1") for _ in range(2))
    assert one == other
    assert one.sending is not other.sending


def test_what_stands_for_a_request_is_not_written_either() -> None:
    assert "object at" not in repr(SentProof((), "GET", "https://example.org/v1"))
