"""Web push: a message encrypted for one browser, and the proof of who sends it.  Pure.

Source: RFC 8291 (encryption), RFC 8188 (`aes128gcm`), RFC 8292 (VAPID).
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from urllib.parse import urlsplit

import msgspec
import orjson
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pdpp_kernel.errors import InvalidRequest
from personal_server.consent.credentials import base64url

AUTH_BYTES, POINT_BYTES, SALT_BYTES, KEY_BYTES = 16, 65, 16, 32
# One record holds a message; its length says no more than how many of these blocks it fills.
RECORD_BYTES, BLOCK_BYTES = 4_096, 512
MOST_PLAIN_BYTES = 3_072
TOKEN_SECONDS = 12 * 3_600
_CURVE = ec.SECP256R1()
# How many points it has; a private key is below.
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


class BrowserKeys(msgspec.Struct, frozen=True):
    """What a browser gave with its subscription: its public point, and a secret shared with us."""

    point: bytes
    auth: bytes

    def packed(self) -> bytes:
        """As one secret."""
        return self.auth + self.point


def unpacked_keys(packed: bytes) -> BrowserKeys:
    """The inverse of `packed`."""
    return BrowserKeys(packed[AUTH_BYTES:], packed[:AUTH_BYTES])


def parse_keys(p256dh: str, auth: str) -> BrowserKeys:
    """The keys of a subscription, base64url.  Raises: InvalidRequest."""
    keys = BrowserKeys(_bytes_of(p256dh), _bytes_of(auth))
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, keys.point)
    except ValueError:
        raise _invalid() from None
    if len(keys.auth) != AUTH_BYTES or len(keys.point) != POINT_BYTES:
        raise _invalid()
    return keys


def new_key(secret: bytes) -> ec.EllipticCurvePrivateKey:
    """The key of 32 random bytes, the same for the same."""
    wide = HKDF(SHA256(), KEY_BYTES + 16, None, b"web push key 1").derive(secret)
    return ec.derive_private_key(int.from_bytes(wide) % (_ORDER - 1) + 1, _CURVE)


def point_of(key: ec.EllipticCurvePublicKey) -> bytes:
    """A public key as browsers take it: an uncompressed point."""
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def padded(plain: bytes) -> bytes:
    """A message with its end marked, filled up to whole blocks.  Raises: ValueError if too long."""
    if len(plain) > MOST_PLAIN_BYTES:
        raise ValueError("This message is too long to be pushed.")
    ended = plain + b"\x02"
    return ended + bytes(-len(ended) % BLOCK_BYTES)


def encrypt(
    ended: bytes, browser: BrowserKeys, key: ec.EllipticCurvePrivateKey, salt: bytes
) -> bytes:
    """A body that this browser alone can read.

    Shapes: `ended` is a message with its end marked (`padded`); `key` and `salt` are for this body
        alone.
    """
    theirs = ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, browser.point)
    point = point_of(key.public_key())
    shared = key.exchange(ec.ECDH(), theirs)
    info = b"WebPush: info\x00" + browser.point + point
    secret = HKDF(SHA256(), 32, browser.auth, info).derive(shared)
    content_key = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\x00").derive(secret)
    nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\x00").derive(secret)
    head = salt + RECORD_BYTES.to_bytes(4) + bytes([POINT_BYTES]) + point
    return head + AESGCM(content_key).encrypt(nonce, ended, None)


def authorization(endpoint: str, contact: str, key: ec.EllipticCurvePrivateKey, now_s: int) -> str:
    """The header that proves to a push service who sends.  Source: RFC 8292 2, 3."""
    parts = urlsplit(endpoint)
    claims = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": now_s + TOKEN_SECONDS,
        "sub": contact,
    }
    # what signs takes a thirtieth of the start of a server, and few browsers are told anything
    from joserfc import jws  # noqa: PLC0415
    from joserfc.jwk import ECKey  # noqa: PLC0415

    signing = ECKey.import_key(_jwk(key))
    token = jws.serialize_compact(
        {"typ": "JWT", "alg": "ES256"}, orjson.dumps(claims), signing, algorithms=["ES256"]
    )
    return f"vapid t={token}, k={base64url(point_of(key.public_key()))}"


def _jwk(key: ec.EllipticCurvePrivateKey) -> dict[str, str | list[str]]:
    point = point_of(key.public_key())
    private = key.private_numbers().private_value.to_bytes(KEY_BYTES)
    return {
        "kty": "EC",
        "crv": "P-256",
        "x": base64url(point[1:33]),
        "y": base64url(point[33:]),
        "d": base64url(private),
    }


def _bytes_of(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise _invalid() from None


def _invalid() -> InvalidRequest:
    return InvalidRequest("The browser gave keys that no message can be encrypted for.")
