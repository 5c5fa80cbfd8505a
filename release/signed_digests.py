"""Digests of all that a release is made of, and who says so.

Shapes: `SHA256SUMS` as `sha256sum --check` takes it; `SHA256SUMS.sig`, 64 bytes of Ed25519 over it;
`signer.pem`, the public key, which a person compares with what they know.
Source: RFC 8032; checked without anything of ours by `openssl pkeyutl -verify -rawin`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

DIGESTS, SIGNATURE, SIGNER = "SHA256SUMS", "SHA256SUMS.sig", "signer.pem"


def write_digests(folder: Path, key: Path | None) -> None:
    """List the files of a folder, and sign the list where there is a key.

    Raises: OSError; ValueError, if the key is none of Ed25519 in PEM without a password.
    """
    listed = sorted(path for path in folder.iterdir() if path.is_file())
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in listed)
    text = "".join(lines).encode()
    (folder / DIGESTS).write_bytes(text)
    if key is None:
        return
    private = load_pem_private_key(key.read_bytes(), None)
    if not isinstance(private, Ed25519PrivateKey):
        raise ValueError("The key is not one of Ed25519.")
    (folder / SIGNATURE).write_bytes(private.sign(text))
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / SIGNER).write_bytes(public)
