"""Verify a consent receipt without any code of the server that made it.

    pdpp grant receipt ID --json > receipt.json
    curl -s https://SERVER/.well-known/jwks.json > keys.json
    python verify_receipt.py receipt.json keys.json

Needs: pip install cryptography.  It checks the signature and, where the file has salt and artifact
(the owner's has, a client's has not), that the receipt is about what was shown.
"""

import base64
import hashlib
import json
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def decode(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


receipt = json.load(open(sys.argv[1]))
keys = {key["kid"]: key for key in json.load(open(sys.argv[2]))["keys"]}
head, body, signature = receipt["receipt"].split(".")
key = keys[json.loads(decode(head))["kid"]]
public = Ed25519PublicKey.from_public_bytes(decode(key["x"]))
public.verify(decode(signature), f"{head}.{body}".encode())  # raises InvalidSignature
said = json.loads(decode(body))
if "salt" in receipt:
    salted = bytes.fromhex(receipt["salt"]) + receipt["shown"].encode()
    if said["shown_digest"] != "sha256:" + hashlib.sha256(salted).hexdigest():
        sys.exit("The signature is good, but this is not what was shown.")
print(json.dumps(said, indent=1))
