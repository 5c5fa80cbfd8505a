"""Passkeys: a signature counts once, for what it was made for, at the origin it was made at."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass, field
from typing import Any

import cbor2
import msgspec
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from pdpp_kernel.errors import SignInFailed
from personal_server.consent.credentials import base64url
from personal_server.domain.own_values import OwnSpace, OwnValues
from personal_server.granting.audit import Acting
from personal_server.granting.passkeys import (
    APPROVE,
    REGISTER,
    SIGN_IN,
    Challenges,
    Passkeys,
    has_passkey,
    relying_party,
)
from personal_server.storage.authorization_rows import AuditRow, PasskeyRow
from server.tests.granting.conftest import Bench

ORIGIN, ELSEWHERE = "https://me.example", "https://evil.example"
OWNER = Acting("owner", "req_1", "127.0.0.1")
PRESENT_AND_VERIFIED, HOLDS_A_KEY = 0x05, 0x40


@dataclass
class Device:
    """An authenticator in software: one ES256 key."""

    origin: str = ORIGIN
    party: str = "me.example"
    flags: int = PRESENT_AND_VERIFIED
    count: int = 0
    key: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    credential_id: bytes = b"device-1-credential"

    def register(self, options: Any) -> str:
        numbers = self.key.public_key().public_numbers()
        x, y = numbers.x.to_bytes(32, "big"), numbers.y.to_bytes(32, "big")
        cose = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: x, -3: y})
        held = bytes(16) + struct.pack(">H", len(self.credential_id)) + self.credential_id + cose
        data = self._authenticator_data(HOLDS_A_KEY) + held
        attested = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client_data = self._client_data("webauthn.create", options["challenge"])
        return self._answer(attestationObject=attested, clientDataJSON=client_data)

    def sign(self, options: Any) -> str:
        self.count += 1
        data = self._authenticator_data(0)
        client_data = self._client_data("webauthn.get", options["challenge"])
        signed = data + hashlib.sha256(client_data).digest()
        signature = self.key.sign(signed, ec.ECDSA(hashes.SHA256()))
        return self._answer(authenticatorData=data, clientDataJSON=client_data, signature=signature)

    def _authenticator_data(self, more: int) -> bytes:
        party = hashlib.sha256(self.party.encode()).digest()
        return party + bytes([self.flags | more]) + struct.pack(">I", self.count)

    def _client_data(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _answer(self, **response: bytes) -> str:
        name = base64url(self.credential_id)
        texts = {key: base64url(value) for key, value in response.items()}
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": texts})


@pytest.fixture
def passkeys(bench: Any) -> Passkeys:
    return Passkeys(bench.store, bench.clock, "Ada's", Challenges(bench.clock, bench.random))


@pytest.fixture
def device(passkeys: Passkeys) -> Device:
    made = Device()
    passkeys.register(ORIGIN, made.register(passkeys.to_register(ORIGIN)), "Phone", OWNER)
    return made


def refused(passkeys: Passkeys, answer: str, purpose: str = SIGN_IN, content: str = "") -> None:
    with pytest.raises(SignInFailed):
        passkeys.verify(ORIGIN, answer, purpose, content)


def test_a_signature_counts_once(passkeys: Passkeys, device: Device) -> None:
    answer = device.sign(passkeys.to_sign(ORIGIN, SIGN_IN))
    passkeys.verify(ORIGIN, answer, SIGN_IN)
    refused(passkeys, answer)


def test_it_counts_for_what_it_was_made_for_only(passkeys: Passkeys, device: Device) -> None:
    answer = device.sign(passkeys.to_sign(ORIGIN, APPROVE, "rv1:a"))
    refused(passkeys, answer)
    refused(passkeys, answer, APPROVE, "rv1:b")
    proof = passkeys.verify(ORIGIN, answer, APPROVE, "rv1:a")
    assert set(proof) == {
        "type",
        "credential_id",
        "public_key",
        "authenticatorData",
        "clientDataJSON",
        "signature",
    }


def test_a_challenge_is_good_for_ten_minutes(
    bench: Any, passkeys: Passkeys, device: Device
) -> None:
    answer = device.sign(passkeys.to_sign(ORIGIN, SIGN_IN))
    bench.now_ns += 601 * 10**9
    refused(passkeys, answer)


def test_a_challenge_of_another_process_is_none_of_ours(
    bench: Any, passkeys: Passkeys, device: Device
) -> None:
    other = Passkeys(bench.store, bench.clock, "Ada's", Challenges(bench.clock, bench.random))
    refused(passkeys, device.sign(other.to_sign(ORIGIN, SIGN_IN)))


@pytest.mark.parametrize(
    "change",
    [
        {"origin": ELSEWHERE},
        {"party": "evil.example"},
        {"flags": 0x01},
        {"credential_id": b"another"},
        {"key": ec.generate_private_key(ec.SECP256R1())},
        {"count": -1},
    ],
    ids=["origin", "party", "unverified", "unknown", "key", "cloned"],
)
def test_what_does_not_fit_is_refused(
    passkeys: Passkeys, device: Device, change: dict[str, Any]
) -> None:
    passkeys.verify(ORIGIN, device.sign(passkeys.to_sign(ORIGIN, SIGN_IN)), SIGN_IN)
    for name, value in change.items():
        setattr(device, name, value)
    refused(passkeys, device.sign(passkeys.to_sign(ORIGIN, SIGN_IN)))


@pytest.mark.parametrize("answer", ["", "[]", "{}", '{"response": {"clientDataJSON": "e30"}}'])
def test_nonsense_is_refused(passkeys: Passkeys, device: Device, answer: str) -> None:
    del device
    refused(passkeys, answer)


def test_only_a_verified_person_registers_and_no_device_twice(
    bench: Any, passkeys: Passkeys, device: Device
) -> None:
    careless = Device(flags=0x01, credential_id=b"careless")
    for each in (careless, device):
        answer = each.register(passkeys.to_register(ORIGIN))
        with pytest.raises(SignInFailed):
            passkeys.register(ORIGIN, answer, "Again", OWNER)
    with pytest.raises(SignInFailed):
        passkeys.verify(ORIGIN, device.register(passkeys.to_register(ORIGIN)), REGISTER)
    assert len(bench.rows(PasskeyRow)) == 1


def test_a_removed_passkey_signs_nothing(bench: Any, passkeys: Passkeys, device: Device) -> None:
    options = passkeys.to_sign(ORIGIN, SIGN_IN)
    (shown,) = passkeys.listed()
    assert has_passkey(bench.store, ORIGIN)
    assert passkeys.remove(shown.reference, OWNER)
    assert not passkeys.remove(shown.reference, OWNER)
    refused(passkeys, device.sign(options))
    assert passkeys.to_sign(ORIGIN, SIGN_IN) is None
    assert not has_passkey(bench.store, ORIGIN)
    assert [row.event for row in bench.rows(AuditRow)][-2:] == [
        "owner.passkey_added",
        "owner.passkey_removed",
    ]


@pytest.mark.parametrize(
    ("origin", "party"),
    [
        ("https://me.example", "me.example"),
        ("https://me.example:8443", "me.example"),
        ("http://localhost:7662", "localhost"),
        ("http://127.0.0.1:7662", None),
        ("http://[::1]:7662", None),
        ("https://192.0.2.1", None),
        ("http://me.example", None),
    ],
)
def test_a_passkey_belongs_to_a_name_and_an_address_has_none(
    passkeys: Passkeys, origin: str, party: str | None
) -> None:
    assert relying_party(origin) == party
    assert (passkeys.to_register(origin) is None) == (party is None)


MINUTES_10 = 600 * 10**9


def made(memory: Bench, space: OwnSpace | None = None) -> Passkeys:
    challenges = Challenges(memory.clock, memory.random, space or OwnSpace())
    return Passkeys(memory.store, memory.clock, "Ada's", challenges)


def row(number: int, party: str = "me.example") -> PasskeyRow:
    return PasskeyRow(
        credential_id=number.to_bytes(2, "big"),
        public_key=b"",
        sign_count=0,
        relying_party=party,
        name=f"Key {number}",
        created_at_ns=number,
    )


def test_a_challenge_carries_a_nonce_its_time_a_seal_and_what_is_signed(memory: Bench) -> None:
    sizes: list[int] = []

    def random(size: int) -> bytes:
        sizes.append(size)
        return memory.random(size)

    challenge = Challenges(memory.clock, random).make(APPROVE, "rv1:a")
    assert (sizes, len(challenge)) == ([32, 16], 72)
    assert int.from_bytes(challenge[16:24], "big") == memory.now_ns
    assert challenge[40:] == hashlib.sha256(b"rv1:a").digest()


@pytest.mark.parametrize(
    ("after_ns", "fits"), [(-1, False), (0, True), (MINUTES_10, True), (MINUTES_10 + 1, False)]
)
def test_a_challenge_fits_from_its_making_for_ten_minutes(
    memory: Bench, after_ns: int, *, fits: bool
) -> None:
    challenges = Challenges(memory.clock, memory.random)
    challenge = challenges.make(SIGN_IN, "")
    memory.now_ns += after_ns
    assert challenges.fits(challenge, SIGN_IN, "") is fits
    assert not challenges.fits(challenge[:-1], SIGN_IN, "")


def test_so_many_answers_are_remembered_that_none_counts_twice(memory: Bench) -> None:
    """Where there is room for no more, one more is refused until the first is too old."""
    challenges = Challenges(memory.clock, memory.random)
    assert all(challenges.spend(challenges.make(SIGN_IN, "")) for _ in range(4_096))
    memory.now_ns += MINUTES_10
    late = challenges.make(SIGN_IN, "")
    assert not challenges.spend(late)
    memory.now_ns += 1
    assert challenges.spend(late)
    assert not challenges.spend(late)
    assert not challenges.fits(late, SIGN_IN, "")


def test_an_answer_that_cannot_be_remembered_opens_nothing(memory: Bench) -> None:
    passkeys, device = made(memory), Device()
    passkeys.register(ORIGIN, device.register(passkeys.to_register(ORIGIN)), "Phone", OWNER)
    for _ in range(4_096):
        passkeys.challenges.spend(passkeys.challenges.make(SIGN_IN, ""))
    refused(passkeys, device.sign(passkeys.to_sign(ORIGIN, SIGN_IN)))


class SharedSpace(OwnSpace):
    """Values that every process sees, and how many bytes there are for one."""

    def __init__(self) -> None:
        self.values_by_name: dict[str, Any] = {}
        self.size_bytes: dict[str, int] = {}

    def values(self, name: str, kind: Any, most: int, size_bytes: int) -> Any:
        del kind
        self.size_bytes[name] = size_bytes
        return self.values_by_name.setdefault(name, OwnValues[Any](most))


def test_processes_know_of_each_other_s_challenges_and_have_room_for_them(memory: Bench) -> None:
    space = SharedSpace()
    one, other = (Challenges(memory.clock, memory.random, space) for _ in range(2))
    challenge = one.make(SIGN_IN, "")
    assert other.fits(challenge, SIGN_IN, "")
    assert other.spend(challenge)
    assert not one.fits(challenge, SIGN_IN, "")
    assert space.size_bytes == {
        "challenges.key": len(msgspec.msgpack.encode(bytes(32))),
        "challenges.answered": len(msgspec.msgpack.encode(memory.now_ns)),
    }


def test_the_key_of_the_seals_is_in_no_text_of_them(memory: Bench) -> None:
    assert "kkkk" not in repr(Challenges(memory.clock, lambda size: b"k" * size))


def test_a_browser_is_told_what_to_make_and_what_there_is(memory: Bench) -> None:
    memory.insert(row(1), row(2, "other.example"))
    passkeys = made(memory)
    options: Any = passkeys.to_register(ORIGIN)
    assert len(options.pop("challenge")) == 96
    assert options == {
        "rp": {"id": "me.example", "name": "Ada's"},
        "user": {"id": base64url(b"own_1"), "name": "owner", "displayName": "Ada's"},
        "pubKeyCredParams": [{"type": "public-key", "alg": alg} for alg in (-7, -8, -257)],
        "excludeCredentials": [
            {"type": "public-key", "id": base64url(number.to_bytes(2, "big"))} for number in (1, 2)
        ],
        "authenticatorSelection": {"residentKey": "required", "userVerification": "required"},
        "attestation": "none",
    }
    signing: Any = passkeys.to_sign(ORIGIN, SIGN_IN)
    assert len(signing.pop("challenge")) == 96
    assert signing == {"rpId": "me.example", "userVerification": "required"}


@pytest.mark.parametrize(("held", "is_room"), [(19, True), (20, False)])
def test_an_owner_has_twenty_passkeys_at_most(memory: Bench, held: int, *, is_room: bool) -> None:
    memory.insert(*map(row, range(held)))
    passkeys = made(memory)
    answer = Device().register(passkeys.to_register(ORIGIN))
    if is_room:
        passkeys.register(ORIGIN, answer, "Phone", OWNER)
    else:
        with pytest.raises(SignInFailed):
            passkeys.register(ORIGIN, answer, "Phone", OWNER)
    assert len(memory.rows(PasskeyRow)) == 20


@pytest.mark.parametrize(
    ("named", "kept"), [(" Phone ", "Phone"), ("  ", "Passkey"), ("n" * 61, "n" * 60)]
)
def test_a_name_is_kept_short_and_there_is_one(memory: Bench, named: str, kept: str) -> None:
    passkeys = made(memory)
    answer = Device().register(passkeys.to_register(ORIGIN))
    passkeys.register(ORIGIN, answer, named, OWNER)
    assert [each.name for each in passkeys.listed()] == [kept]


def test_passkeys_are_listed_the_first_first_by_what_opens_nothing(memory: Bench) -> None:
    memory.insert(row(2), row(1))
    first, second = made(memory).listed()
    assert [first.name, second.name] == ["Key 1", "Key 2"]
    assert first.reference == hashlib.sha256(bytes([0, 1])).hexdigest()[:24]
    assert (first.relying_party, first.created_at_ns, first.last_used_at_ns) == (
        "me.example",
        1,
        None,
    )
    assert made(memory).remove(second.reference, OWNER)
    assert [each.name for each in made(memory).listed()] == ["Key 1"]


def test_a_signature_is_noted_with_its_number_and_its_time(memory: Bench) -> None:
    passkeys, device = made(memory), Device(count=4)
    passkeys.register(ORIGIN, device.register(passkeys.to_register(ORIGIN)), "Phone", OWNER)
    memory.now_ns += 5
    proof = passkeys.verify(ORIGIN, device.sign(passkeys.to_sign(ORIGIN, SIGN_IN)), SIGN_IN)
    (kept,) = memory.rows(PasskeyRow)
    assert (kept.sign_count, kept.last_used_at_ns) == (5, memory.now_ns)
    assert proof["type"] == "webauthn"
    assert proof["credential_id"] == base64url(device.credential_id)
    assert proof["public_key"] == base64url(kept.public_key)


def test_a_passkey_of_another_origin_of_ours_signs_nothing_here(memory: Bench) -> None:
    passkeys, device = made(memory), Device()
    passkeys.register(ORIGIN, device.register(passkeys.to_register(ORIGIN)), "Phone", OWNER)
    memory.insert(row(1, "evil.example"))
    device.origin = ELSEWHERE
    answer = device.sign(passkeys.to_sign(ELSEWHERE, SIGN_IN))
    with pytest.raises(SignInFailed):
        passkeys.verify(ELSEWHERE, answer, SIGN_IN)
