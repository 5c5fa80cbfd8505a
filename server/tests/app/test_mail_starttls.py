"""TLS that begins after the greeting: with a real dovecot, and with servers that would not."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from personal_server.app import mailbox_runs
from personal_server.app.mail_starttls import NOT_BEGUN
from personal_server.app.mailbox_runs import MailPlace
from personal_server.feeds.fetched_batches import FetchTrouble
from server.tests.app.test_mailbox_runs import FeedOf, feed_of, hostile, put, settings, signed_in
from tests.dovecot import PASSWORD, USER, mail_server, needs_dovecot

__all__ = ["feed_of", "settings"]


def a_certificate(path: Path, address: str) -> Path:
    """One for an address, by nobody, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mail")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    spelled = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(certificate.public_bytes(pem) + spelled)
    return path


@needs_dovecot
def test_mail_is_fetched_over_tls_that_begins_after_the_greeting(
    feed_of: FeedOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = a_certificate(tmp_path / "mail.pem", "127.0.0.1")
    with mail_server(certificate) as server:
        with signed_in(server) as client:
            put(client, "INBOX", range(3))
        fed = feed_of(MailPlace.spelled("127.0.0.1", USER, server.port, starttls=True), PASSWORD)
        assert fed.run().code == "certificate_refused"  # nobody vouches for it
        assert server.log.count("Login: user") == 1
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        fed.engine.resume(fed.feed_id)
        result = fed.run()
        last = [line for line in server.log.splitlines() if "Login: user" in line][-1]
    assert (result.code, result.records_new) == (None, 3)
    assert ", TLS," in last


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([b"* OK hello\r\n", b"TAG NO not here\r\n"], NOT_BEGUN),
        ([b"* OK hello\r\n", b"* OK soon\r\nTAG BAD what\r\n"], NOT_BEGUN),
        ([b"* PREAUTH welcome back\r\n"], NOT_BEGUN),
        ([b"* BYE full\r\n"], NOT_BEGUN),
        ([b"x" * 20_000], "mailbox_misbehaves"),
        ([b"* OK hello\r\n", b"* OK on and on\r\n" * 200], "mailbox_misbehaves"),
        ([], "mailbox_unreachable"),
        ([b"* OK hello\r\n", b"TAG OK go\r\nP1 OK signed in already\r\n"], "mailbox_unreachable"),
    ],
)
def test_a_server_that_does_not_begin_tls_gets_no_password(answers: list[bytes], code: str) -> None:
    with hostile(answers) as port, pytest.raises(FetchTrouble) as refused:
        MailPlace.of(f"imap+starttls://ada@127.0.0.1:{port}").connected()
    assert refused.value.code == code


@pytest.mark.parametrize("scheme", ["imaps", "imap+starttls"])
def test_a_handshake_of_a_byte_now_and_then_is_bounded_as_a_whole(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailbox_runs, "CONNECT_SECONDS", 0.2)
    is_left, is_over = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            wire, _ = listener.accept()
            with wire, suppress(OSError):
                if scheme == "imap+starttls":
                    wire.sendall(b"* OK hello\r\n")
                    wire.recv(100)
                    wire.sendall(b"P0 OK go\r\n")
                for byte in b"\x16\x03\x03\x20\x00" + bytes(25):
                    wire.sendall(bytes([byte]))
                    is_over.wait(0.1)
                return
            is_left.set()

        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        with pytest.raises(FetchTrouble) as refused:
            MailPlace.of(f"{scheme}://ada@127.0.0.1:{port}").connected()
        thread.join()
    assert refused.value.code == "mailbox_unreachable"
    assert is_left.is_set()


def test_a_place_says_how_tls_begins() -> None:
    place = MailPlace.spelled("imap.example.org", "ada", None, starttls=True)
    assert place == "imap+starttls://ada@imap.example.org"
    found = MailPlace.of(place)
    assert (found.port, found.is_plain, found.sign_in("x").is_greeted) == (143, False, True)
    assert ssl.create_default_context().verify_mode == ssl.CERT_REQUIRED
