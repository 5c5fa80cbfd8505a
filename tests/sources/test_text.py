import pytest

from personal_server.sources.text import decoded


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Привет, Zoë".encode(), "Привет, Zoë"),
        ("“Zoë” €".encode("cp1252"), "“Zoë” €"),
        ("Привет".encode() + b" caf\xe9", "Привет café"),
        ("Привет".encode()[:-1], "ПривеÑ"),
        (b"\x81", "\ufffd"),
        (b"\xed\xa0\x80", "í\xa0€"),
    ],
)
def test_a_stray_byte_costs_no_other_character(content: bytes, text: str) -> None:
    assert decoded(content) == text


def test_an_unknown_charset_counts_as_none() -> None:
    assert decoded(b"na\xc3\xafve", "x-unheard-of") == "naïve"
