"""A test that names no authority trusts none, and is not sped up by trusting everybody."""

from __future__ import annotations

import ssl

import pytest


def test_a_context_of_a_test_trusts_nobody_and_asks_for_a_certificate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    context = ssl.create_default_context()
    assert context.cert_store_stats()["x509_ca"] == 0
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
