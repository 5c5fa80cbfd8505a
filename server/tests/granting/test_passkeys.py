"""Passkeys: a signature counts once, for what it was made for, at the origin it was made at."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass, field
from typing import Any

import cbor2
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from pdpp_kernel.errors import SignInFailed
from personal_server.consent.credentials import base64url
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
