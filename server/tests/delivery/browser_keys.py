"""A browser that gets web push: its keys, and its way to read a message, written from RFC 8291 and
RFC 8188 with hash functions and one block cipher, sharing no code with the server.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from personal_server.delivery.web_push import BrowserKeys

Private = ec.EllipticCurvePrivateKey


def text_of(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def browser(number: int = 7) -> tuple[Private, BrowserKeys]:
    """A private key, and what a browser tells of itself."""
    private = ec.derive_private_key(number, ec.SECP256R1())
    return private, BrowserKeys(point(private.public_key()), b"a" * 16)


def decrypted(body: bytes, private: Private, auth: bytes) -> bytes:
    """What a body of one record says.  Raises: InvalidTag, AssertionError."""
    salt, record_bytes, length = body[:16], int.from_bytes(body[16:20]), body[20]
    theirs, sealed = body[21 : 21 + length], body[21 + length :]
    assert len(sealed) <= record_bytes
    sender = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), theirs)
    shared = private.exchange(ec.ECDH(), sender)
    ours = point(private.public_key())
    secret = _expanded(_mac(auth, shared), b"WebPush: info\x00" + ours + theirs, 32)
    prk = _mac(salt, secret)
    key = _expanded(prk, b"Content-Encoding: aes128gcm\x00", 16)
    nonce = _expanded(prk, b"Content-Encoding: nonce\x00", 12)
    opening = Cipher(algorithms.AES(key), modes.GCM(nonce, sealed[-16:])).decryptor()
    ended = (opening.update(sealed[:-16]) + opening.finalize()).rstrip(b"\x00")
    assert ended[-1] == 2  # the last record
    return ended[:-1]


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()


def _expanded(prk: bytes, info: bytes, size: int) -> bytes:
    return _mac(prk, info + b"\x01")[:size]


def vapid_claims(header: str, key: ec.EllipticCurvePublicKey) -> dict[str, Any]:
    """What a sender proves of itself.  Raises: InvalidSignature, AssertionError."""
    scheme, _, parameters = header.partition(" ")
    parts = dict(each.strip().split("=", 1) for each in parameters.split(","))
    assert (scheme, bytes_of(parts["k"])) == ("vapid", point(key))
    head, claims, signature = parts["t"].split(".")
    assert json.loads(bytes_of(head)) == {"typ": "JWT", "alg": "ES256"}
    raw = bytes_of(signature)
    signed = utils.encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    key.verify(signed, f"{head}.{claims}".encode(), ec.ECDSA(SHA256()))
    return json.loads(bytes_of(claims))
