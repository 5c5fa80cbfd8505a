"""What a client's key proves is what the server asks for."""

from __future__ import annotations

import pytest

from pdpp_kernel.errors import InvalidDpopProof
from pdpp_mcp_server.rs_client.proof_keys import ProofKey
from personal_server.domain.possession import PresentedToken, SentProof
from personal_server.reading.proofs import Proofs

NOW_NS = 1_795_000_000_000_000_000
URL = "https://me.example/v1/streams/a%2Fb/records"


def test_a_proof_is_what_the_server_asks_for() -> None:
    now_ns = NOW_NS - 3_600 * 10**9
    proofs, key = Proofs(lambda: now_ns, bytes), ProofKey(clock=lambda: NOW_NS)
    now_ns = NOW_NS
    sent = SentProof((key.proof("GET", f"{URL}?limit=1#x", "pdpp_at_1"),), "GET", URL)
    proofs.admit(PresentedToken("pdpp_at_1", sent), key.jkt)
    first = SentProof((key.proof("POST", URL),), "POST", URL)
    assert proofs.key_of(first) == key.jkt
    assert proofs.key_of(SentProof((key.proof("POST", URL),), "POST", URL)) == key.jkt
    with pytest.raises(InvalidDpopProof):
        proofs.key_of(SentProof(first.texts, "POST", URL))
