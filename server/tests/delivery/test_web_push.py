"""Encryption of web push against the example of RFC 8291 and an independent reader."""

from __future__ import annotations

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from pdpp_kernel.errors import InvalidRequest
from personal_server.delivery.web_push import (
    BLOCK_BYTES,
    MOST_PLAIN_BYTES,
    RECORD_BYTES,
    BrowserKeys,
    encrypt,
    new_key,
    padded,
    parse_keys,
    unpacked_keys,
)
from server.tests.delivery.browser_keys import browser, bytes_of, decrypted, point, text_of

# RFC 8291, appendix A
PLAIN = b"When I grow up, I want to be a watermelon"
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
POINT = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH, SALT = "BTBZMqHH6r4Tts7J_aSIgg", "DGv6ra1nlYgDCS1FRnbzlw"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6Tlz"
    "AC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_the_example_of_the_standard_comes_out_to_the_byte() -> None:
    key = ec.derive_private_key(int.from_bytes(bytes_of(SENDER)), ec.SECP256R1())
    body = encrypt(PLAIN + b"\x02", parse_keys(POINT, AUTH), key, bytes_of(SALT))
    assert text_of(body) == BODY


@given(st.binary(max_size=MOST_PLAIN_BYTES), st.integers(1, 2**200))
def test_the_browser_alone_reads_it_and_its_length_tells_blocks_only(
    plain: bytes, number: int
) -> None:
    private, keys = browser(number)
    body = encrypt(padded(plain), keys, new_key(b"k" * 32), b"s" * 16)
    assert decrypted(body, private, keys.auth) == plain
    assert (len(body) - 86 - 16) % BLOCK_BYTES == 0
    assert len(body) - 86 <= RECORD_BYTES
    other, _ = browser(number + 1)
    with pytest.raises(InvalidTag):
        decrypted(body, other, keys.auth)
    with pytest.raises(InvalidTag):
        decrypted(body, private, b"b" * 16)


def test_keys_are_packed_checked_and_made_of_their_secret() -> None:
    _, keys = browser()
    assert unpacked_keys(keys.packed()) == keys
    assert point(new_key(b"1" * 32).public_key()) == point(new_key(b"1" * 32).public_key())
    assert point(new_key(b"1" * 32).public_key()) != point(new_key(b"2" * 32).public_key())
    for wrong in (
        BrowserKeys(keys.point[:-1] + b"\x00", keys.auth),
        BrowserKeys(keys.point[:33], keys.auth),
        BrowserKeys(keys.point, keys.auth[:8]),
        BrowserKeys(b"", b""),
    ):
        with pytest.raises(InvalidRequest):
            parse_keys(text_of(wrong.point), text_of(wrong.auth))
    with pytest.raises(ValueError, match="too long"):
        padded(bytes(MOST_PLAIN_BYTES + 1))
