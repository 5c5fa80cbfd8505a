"""Keys of a client: what they learn, and where they lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pdpp_mcp_server.rs_client.credential_cache import CredentialCache
from pdpp_mcp_server.rs_client.credentials import (
    Credential,
    CredentialInsecure,
    CredentialInvalid,
    credential_document,
    parse_credential,
)
from pdpp_mcp_server.rs_client.proof_keys import KeyRing, ProofKey

NOW_NS = 1_795_000_000_000_000_000
URL = "https://me.example/v1/streams/a%2Fb/records"


def credential(jkt: str | None) -> Credential:
    members = {"access_token": "pdpp_at_1", "dpop_jkt": jkt}
    client = {"client_id": "cli_1"}
    url = "https://me.example"
    return parse_credential(credential_document(url, url, "pdpp:read", client, members, NOW_NS))


@pytest.fixture
def ring(tmp_path: Path) -> KeyRing:
    return KeyRing(CredentialCache(tmp_path / ".pdpp", folder="keys"))


def test_a_nonce_is_kept_and_a_request_repeated_once() -> None:
    key = ProofKey()
    assert not key.learn(200, {})
    assert not key.learn(401, {"www-authenticate": "DPoP"})
    assert key.learn(401, {"dpop-nonce": "n1"})
    assert not key.learn(401, {"dpop-nonce": "n1"})
    assert not key.learn(200, {"dpop-nonce": "n2"})
    assert key.nonce == "n2"


def test_a_key_is_kept_found_again_and_forgotten(ring: KeyRing, tmp_path: Path) -> None:
    key = ProofKey()
    ring.keep(key)
    again = KeyRing(ring.cache)
    found = again.of(credential(key.jkt))
    assert found is not None
    assert (found.jkt, found.secret) == (key.jkt, key.secret)
    assert again.of(credential(None)) is None
    again.forget(credential(key.jkt))
    with pytest.raises(CredentialInvalid):
        KeyRing(ring.cache).of(credential(key.jkt))


def test_a_key_shows_nothing_of_itself() -> None:
    key = ProofKey(b"\x07" * 32)
    assert "\\x07" not in repr(key)
    assert "secret" not in repr(key)


@pytest.mark.parametrize("secret", [None, 7, "", "AAAA", "*", "é"])
def test_a_broken_key_is_missing(ring: KeyRing, secret: object) -> None:
    jkt = ProofKey().jkt
    ring.cache.keep_file(f"{jkt}.json", {"d": secret})
    with pytest.raises(CredentialInvalid):
        ring.of(credential(jkt))


def test_a_planted_link_is_refused(ring: KeyRing, tmp_path: Path) -> None:
    key = ProofKey()
    ring.keep(key)
    place = tmp_path / ".pdpp" / "keys" / f"{key.jkt}.json"
    place.rename(tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", place)
    with pytest.raises(CredentialInsecure):
        KeyRing(ring.cache).of(credential(key.jkt))
