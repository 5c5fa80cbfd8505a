"""How addresses in proofs are compared, and that each refusal says its reason."""

from __future__ import annotations

import pytest

from pdpp_kernel.errors import InvalidDpopProof
from personal_server.reading.proof_token import normal_url, proof_refused


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://me.example/v1", "https://me.example/v1"),
        ("HTTPS://ME.Example/V1", "https://me.example/V1"),
        ("https://me.example", "https://me.example/"),
        ("https://me.example/?q=1#x", "https://me.example/"),
        ("https://me.example:443/a", "https://me.example/a"),
        ("http://me.example:80/a", "http://me.example/a"),
        ("http://me.example:443/a", "http://me.example:443/a"),
        ("https://me.example:80/a", "https://me.example:80/a"),
        ("https://me.example:7662/a", "https://me.example:7662/a"),
        ("https://me.example:/a", "https://me.example/a"),
        ("https://me.example:0/a", "https://me.example:0/a"),
        ("http://[::1]:7662/a", "http://[::1]:7662/a"),
        ("http://[2001:DB8::1]/a", "http://[2001:db8::1]/a"),
        ("https://me.example/a/../b", "https://me.example/a/../b"),
        ("ftp://me.example:21/a", "ftp://me.example:21/a"),
    ],
)
def test_an_address_has_one_form(url: str, expected: str) -> None:
    assert normal_url(url) == expected
    assert normal_url(expected) == expected


@pytest.mark.parametrize(
    ("escaped", "expected"),
    [
        ("%41%7a%30", "Az0"),
        ("%2d%2E%5f%7E", "-._~"),
        ("%2f%3f", "%2F%3F"),
        ("%e4%B2", "%E4%B2"),  # a letter of another alphabet stays as it is escaped
        ("%b5%c0%aa", "%B5%C0%AA"),
        ("%20%25%41", "%20%25A"),
        ("%4g%", "%4g%"),
        ("%40%5b%60%7b", "%40%5B%60%7B"),
    ],
)
def test_what_needs_no_escape_has_none(escaped: str, expected: str) -> None:
    assert normal_url(f"https://me.example/{escaped}") == f"https://me.example/{expected}"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/v1",
        "https:///v1",
        "https://:443/v1",
        "https://a@me.example/",
        "https://@me.example/",
        "https://me.example:x/",
        "https://me.example:65536/",
        "https://[::1/",
    ],
)
def test_what_is_no_address_has_no_form(url: str) -> None:
    assert normal_url(url) is None


REASONS = [
    *("header", "form", "typ", "alg", "crit", "jwk", "signature"),
    *("jti", "htm", "htu", "iat", "nonce", "ath", "replay"),
]


@pytest.mark.parametrize("reason", REASONS)
def test_a_refusal_says_its_reason(reason: str) -> None:
    refused = proof_refused(reason)
    assert isinstance(refused, InvalidDpopProof)
    assert refused.members["reason"] == reason
    assert len({str(proof_refused(each)) for each in REASONS}) == len(REASONS)
