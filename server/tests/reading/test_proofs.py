"""Proofs of possession, one check at a time; the examples are those of RFC 9449."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from joserfc import jwk

from pdpp_kernel.errors import InvalidDpopProof, InvalidToken, UseDpopNonce
from personal_server.domain.possession import PresentedToken, SentProof
from personal_server.reading.proof_token import normal_url
from personal_server.reading.proofs import (
    BEHIND_SECONDS,
    NONCE_SECONDS,
    Proofs,
)
from tests.proving import SECONDS, Holder, segment

URL = "https://me.example/v1/streams"
TOKEN = "pdpp_at_1"
EXAMPLE_KEY = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
EXAMPLE_TOKEN = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"
EXAMPLE_HEADER = (
    "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0"
    "VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10"
    "NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19"
)
AT_TOKEN_ENDPOINT = (  # section 4.2
    f"{EXAMPLE_HEADER}.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8v"
    "c2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdr"
    "j8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg"
)
AT_RESOURCE = (  # section 7.1
    f"{EXAMPLE_HEADER}.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9y"
    "ZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVI"
    "eU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxR"
    "imPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA"
)


class Bench:
    """A judge that has run for an hour, and a holder whose clock is right."""

    def __init__(self, room: int = 1_000) -> None:
        self.now_ns = 1_562_262_616 * SECONDS
        numbers = itertools.count(1)
        self.proofs = Proofs(
            lambda: self.now_ns, lambda size: next(numbers).to_bytes(size, "big"), room
        )
        self.now_ns += 3_600 * SECONDS
        self.holder = Holder()

    def sent(self, method: str = "GET", url: str = URL, **over: Any) -> SentProof:
        said: dict[str, Any] = {"token": TOKEN, **over}
        proof = self.holder.proof(method, url, self.now_ns, **said)
        return SentProof((proof,), "GET", URL)

    def admit(self, sent: SentProof, bound_to: str | None = "") -> None:
        key = self.holder.jkt if bound_to == "" else bound_to
        self.proofs.admit(PresentedToken(TOKEN, sent), key)

    def reason(self, sent: SentProof) -> object:
        with pytest.raises(InvalidDpopProof) as refused:
            self.admit(sent)
        return refused.value.members.get("reason")

    def take_nonce(self, sent: SentProof) -> None:
        with pytest.raises(UseDpopNonce) as asked:
            self.admit(sent)
        self.holder.nonce = asked.value.nonce


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_examples_of_the_standard_are_good() -> None:
    now_ns = 1_562_262_600 * SECONDS
    proofs = Proofs(lambda: now_ns, bytes)
    now_ns = 1_562_262_620 * SECONDS
    token_endpoint = SentProof((AT_TOKEN_ENDPOINT,), "POST", "https://server.example.com/token")
    assert proofs.key_of(token_endpoint) == EXAMPLE_KEY
    url = "https://resource.example.org/protectedresource"
    presented = PresentedToken(EXAMPLE_TOKEN, SentProof((AT_RESOURCE,), "GET", url))
    proofs.admit(presented, EXAMPLE_KEY)


@pytest.mark.parametrize("kind", ["ES256", "Ed25519"])
def test_a_good_proof_passes_once(bench: Bench, kind: str) -> None:
    if kind == "Ed25519":
        bench.holder = Holder(jwk.OKPKey.generate_key("Ed25519"), "Ed25519")
    sent = bench.sent()
    bench.admit(sent)
    bench.admit(sent)  # the same request, judged again
    assert bench.reason(SentProof(sent.texts, sent.method, sent.url)) == "replay"


@pytest.mark.parametrize(
    ("reason", "header", "claims"),
    [
        ("typ", {"typ": "jwt"}, {}),
        ("typ", {"typ": None}, {}),
        ("crit", {"crit": ["b64"], "b64": True}, {}),
        ("jwk", {"jwk": None}, {}),
        ("jwk", {"jwk": {"kty": "oct", "k": "AAAA"}}, {}),
        ("jwk", {"jwk": {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}}, {}),
        ("jwk", {"jwk": {"kty": "EC", "crv": "P-256", "x": 1, "y": 2}}, {}),
        ("jwk", {"jwk": jwk.ECKey.generate_key("P-384").as_dict(private=False)}, {}),
        ("jwk", {"jwk": jwk.OKPKey.generate_key("Ed25519").as_dict(private=False)}, {}),
        ("signature", {"jwk": jwk.ECKey.generate_key("P-256").as_dict(private=False)}, {}),
        ("jti", {}, {"jti": None}),
        ("jti", {}, {"jti": ""}),
        ("jti", {}, {"jti": "j" * 257}),
        ("jti", {}, {"jti": 7}),
        ("htm", {}, {"htm": "POST"}),
        ("htm", {}, {"htm": "get"}),
        ("htm", {}, {"htm": None}),
        ("htu", {}, {"htu": "https://me.example/v1/schema"}),
        ("htu", {}, {"htu": "https://other.example/v1/streams"}),
        ("htu", {}, {"htu": "http://me.example/v1/streams"}),
        ("htu", {}, {"htu": "https://me.example:8443/v1/streams"}),
        ("htu", {}, {"htu": "https://me.example:x/v1/streams"}),
        ("htu", {}, {"htu": "https://a@me.example/v1/streams"}),
        ("htu", {}, {"htu": "/v1/streams"}),
        ("htu", {}, {"htu": None}),
        ("ath", {}, {"ath": None}),
        ("ath", {}, {"token": "pdpp_at_2"}),
        ("iat", {}, {"iat": None}),
        ("iat", {}, {"iat": "now"}),
        ("iat", {}, {"iat": True}),
        ("nonce", {}, {"nonce": 1}),
    ],
)
def test_each_check_refuses_by_its_name(
    bench: Bench, reason: str, header: dict[str, Any], claims: dict[str, Any]
) -> None:
    assert bench.reason(bench.sent(header=header, **claims)) == reason


def test_a_private_key_in_the_header_is_refused(bench: Bench) -> None:
    private = bench.holder.key.as_dict(private=True)
    assert bench.reason(bench.sent(header={"jwk": private})) == "jwk"


@pytest.mark.parametrize("alg", ["none", "HS256", "RS256", "ES384", "EdDSA", None, ["ES256"]])
def test_only_two_algorithms_are_taken(bench: Bench, alg: object) -> None:
    _, payload, signature = bench.sent().texts[0].split(".")
    public = bench.holder.key.as_dict(private=False)
    head = segment({"typ": "dpop+jwt", "alg": alg, "jwk": public})
    assert bench.reason(SentProof((f"{head}.{payload}.{signature}",), "GET", URL)) == "alg"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.b",
        "a.b.c",
        "ü.ü.ü",
        "x" * 4_097,
        f"{segment({'typ': 'dpop+jwt'})}.{segment([1])}.AA",
        f"{segment('[' * 900)}.{segment({})}.AA",
        f"{'W1tb' * 900}.{segment({})}.AA",
        f"{segment({})}.{'W1tb' * 900}.AA",
    ],
)
def test_what_is_no_signed_object_is_refused(bench: Bench, text: str) -> None:
    assert bench.reason(SentProof((text,), "GET", URL)) == "form"


@pytest.mark.parametrize("kind", ["ES256", "Ed25519"])
@pytest.mark.parametrize("value", [None, 1, 1.5, True, "", "é", "AA", [], {}, ["AA"], "A" * 5_000])
def test_a_key_whose_members_are_none_of_a_key_is_refused(
    bench: Bench, kind: str, value: object
) -> None:
    if kind == "Ed25519":
        bench.holder = Holder(jwk.OKPKey.generate_key("Ed25519"), "Ed25519")
    for name in ("x", "y") if kind == "ES256" else ("x",):
        public = {**bench.holder.key.as_dict(private=False), name: value}
        expected = "form" if isinstance(value, str) and len(value) > 4_096 else "jwk"
        assert bench.reason(bench.sent(header={"jwk": public})) == expected
        left = {key: held for key, held in public.items() if key != name}
        assert bench.reason(bench.sent(header={"jwk": left})) == "jwk"


def of_length(bench: Bench, length: int) -> SentProof:
    """A good proof of so many characters; what header and claims hold grows by four for three."""
    shortest = len(bench.sent(header={"kid": ""}, note="").texts[0])
    notes = (length - shortest) // 4 * 3
    for pad in range(3):
        for more in range(notes - 6, notes + 3):
            sent = bench.sent(header={"kid": "k" * pad}, note="n" * more)
            if len(sent.texts[0]) == length:
                return sent
    raise LookupError


def test_a_proof_of_more_than_4096_characters_is_refused_though_it_is_good(bench: Bench) -> None:
    bench.admit(of_length(bench, 4_096))
    assert bench.reason(of_length(bench, 4_097)) == "form"


@pytest.mark.parametrize("claims", [[1], "claims", 7, None])
def test_claims_are_an_object(bench: Bench, claims: object) -> None:
    head, _, signature = bench.sent().texts[0].split(".")
    text = f"{head}.{segment(claims)}.{signature}"
    assert bench.reason(SentProof((text,), "GET", URL)) == "form"


def test_two_headers_are_refused_and_none(bench: Bench) -> None:
    (text,) = bench.sent().texts
    assert bench.reason(SentProof((text, text), "GET", URL)) == "header"
    assert bench.reason(SentProof((), "GET", URL)) == "header"


def test_a_changed_signature_is_refused(bench: Bench) -> None:
    head, payload, signature = bench.sent().texts[0].split(".")
    other = bench.sent().texts[0].split(".")[2]
    assert bench.reason(SentProof((f"{head}.{payload}.{other}",), "GET", URL)) == "signature"
    cut = SentProof((f"{head}.{payload}.{signature[:-8]}",), "GET", URL)
    assert bench.reason(cut) == "signature"


def test_a_token_is_presented_as_it_is_bound(bench: Bench) -> None:
    for presented, bound in (
        (PresentedToken(TOKEN), bench.holder.jkt),
        (PresentedToken(TOKEN, bench.sent()), None),
        (PresentedToken(TOKEN, bench.sent()), Holder().jkt),
    ):
        with pytest.raises(InvalidToken):
            bench.proofs.admit(presented, bound)
    bench.proofs.admit(PresentedToken(TOKEN), None)


@pytest.mark.parametrize("off", [-BEHIND_SECONDS - 1, 6, 3_600, -86_400])
def test_a_wrong_clock_is_asked_for_a_nonce_which_counts_instead(bench: Bench, off: int) -> None:
    made = bench.now_ns // SECONDS + off
    bench.take_nonce(bench.sent(iat=made))
    bench.admit(bench.sent(iat=made))
    bench.now_ns += NONCE_SECONDS * SECONDS
    bench.admit(bench.sent(iat=made))
    bench.now_ns += SECONDS
    bench.take_nonce(bench.sent(iat=made))
    bench.admit(bench.sent(iat=made))


@pytest.mark.parametrize("off", [-BEHIND_SECONDS, 0, 5])
def test_a_clock_that_is_nearly_right_needs_no_nonce(bench: Bench, off: int) -> None:
    bench.admit(bench.sent(iat=bench.now_ns // SECONDS + off))


@pytest.mark.parametrize("nonce", ["", "AAAA", "ü", "A" * 32, "=", "*" * 32])
def test_a_nonce_that_is_not_ours_brings_one_that_is(bench: Bench, nonce: str) -> None:
    bench.take_nonce(bench.sent(nonce=nonce))
    bench.admit(bench.sent())


def test_after_a_start_no_proof_of_before_passes(bench: Bench) -> None:
    ahead = bench.sent(iat=bench.now_ns // SECONDS + 5)
    bench.admit(ahead)
    started = Proofs(lambda: bench.now_ns, lambda size: b"\x09" * size)
    bench.proofs = started
    bench.take_nonce(SentProof(ahead.texts, "GET", URL))
    bench.admit(bench.sent())
    bench.holder.nonce = None
    bench.now_ns += 6 * SECONDS
    bench.admit(bench.sent())


def test_a_nonce_of_before_a_start_is_not_ours(bench: Bench) -> None:
    bench.take_nonce(bench.sent(iat=1))
    bench.proofs = Proofs(lambda: bench.now_ns, lambda size: b"\x09" * size)
    bench.take_nonce(bench.sent())


def test_what_is_remembered_is_bounded_and_no_proof_passes_twice() -> None:
    bench = Bench(room=3)
    first = bench.sent()
    for sent in (first, bench.sent(), bench.sent()):
        bench.admit(sent)
    with pytest.raises(UseDpopNonce):
        bench.admit(bench.sent())
    with pytest.raises(UseDpopNonce):
        bench.admit(SentProof(first.texts, "GET", URL))
    bench.now_ns += 6 * SECONDS
    bench.admit(bench.sent())


def test_a_proof_by_nonce_is_remembered_as_long_as_its_nonce_is_good() -> None:
    for seconds, is_good in ((0, False), (NONCE_SECONDS, False), (NONCE_SECONDS + 1, True)):
        bench = Bench(room=3)
        bench.take_nonce(bench.sent(iat=1))
        for _ in range(3):
            bench.admit(bench.sent(iat=1))
        bench.now_ns += seconds * SECONDS
        bench.holder.nonce = None
        if is_good:
            bench.admit(bench.sent())
        else:
            with pytest.raises(UseDpopNonce):
                bench.admit(bench.sent())


def test_what_is_too_old_to_come_again_gives_way() -> None:
    bench = Bench(room=3)
    for _ in range(20):
        bench.admit(bench.sent())
        bench.now_ns += 31 * SECONDS


@pytest.mark.parametrize(
    "other",
    [
        "HTTPS://ME.example/v1/a%2Fb",
        "https://me.example:443/v1/a%2fb",
        "https://me.example/v1/%61%2Fb",
        "https://me.example/v1/a%2Fb?limit=1#x",
    ],
)
def test_addresses_that_mean_the_same_are_one(other: str) -> None:
    assert normal_url(other) == normal_url("https://me.example/v1/a%2Fb")


def test_an_escaped_slash_is_no_slash() -> None:
    assert normal_url("https://me.example/v1/a%2Fb") != normal_url("https://me.example/v1/a/b")
    assert normal_url("http://[::1]:7662") == "http://[::1]:7662/"


@pytest.mark.parametrize("jti", ["j", "j" * 256])
def test_a_number_of_1_to_256_characters_is_one(bench: Bench, jti: str) -> None:
    bench.admit(bench.sent(jti=jti))
