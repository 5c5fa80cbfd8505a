from base64 import b64encode, encodebytes, urlsafe_b64encode
from hashlib import sha256

import pytest

from pdpp_mcp_server.faces.truncation import binary_facts

raw = bytes(range(256)) * 2
digest = "sha256:" + sha256(raw).hexdigest()
encodings = [
    b64encode(raw),
    urlsafe_b64encode(raw),
    b64encode(raw).rstrip(b"=") + b"",
    encodebytes(raw),
    encodebytes(raw).replace(b"\n", b"\r\n"),
    b"data:;base64," + b64encode(raw),
]


@pytest.mark.parametrize("encoded", encodings)
def test_encoded_bytes_are_recognised_with_size_and_digest(encoded: bytes) -> None:
    text = encoded.decode()
    facts = binary_facts(text, declared=len(text) % 4 != 0)
    assert facts is not None
    assert (facts.size_bytes, facts.digest) == (len(raw), digest)


words = [
    "w" * 400,
    "word " * 100,
    "\n".join(["https", "word"] * 60),
    "\n".join("line-of-a-poem-without-spaces-but-of-another-length"[: 20 + n] for n in range(30)),
    "short",
    b64encode(bytes(range(150))).decode(),
]


@pytest.mark.parametrize("text", words)
def test_words_are_bytes_only_by_declaration(text: str) -> None:
    assert binary_facts(text) is None
    assert binary_facts(text, declared=True) is not None
    assert binary_facts("", declared=True) is None


def test_what_does_not_decode_has_neither_size_nor_digest() -> None:
    facts = binary_facts("not encoded at all!", declared=True)
    assert facts is not None
    assert (facts.size_bytes, facts.digest) == (None, None)
    assert facts.placeholder == "[binary application/octet-stream]"
