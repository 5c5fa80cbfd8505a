import pytest

from pdpp_sources.common.text import decoded, unescaped


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


def test_a_byte_that_is_none_of_the_charset_named_costs_one_character() -> None:
    assert decoded("中文".encode("gb18030") + b"\xff", "gb2312") == "中文\ufffd"
    assert decoded("Привет".encode("koi8-r"), "koi8-r") == "Привет"


def test_utf_8_that_is_called_western_is_utf_8() -> None:
    assert decoded("naïve".encode(), "iso-8859-1") == "naïve"
    assert decoded("naïve".encode("cp1252"), "iso-8859-1") == "naïve"


@pytest.mark.parametrize(
    ("content", "charset", "text"),
    [
        ("日本".encode("euc_jp") + b"\xad\xa1", "euc-jp", "日本①"),
        (b"\x1b$B-!\x1b(B", "iso-2022-jp", "①"),
        (b"\x1b$BF|K\\\x1b(B", None, "日本"),
        (b"\x1b$BF|\nK\\\x1b(B", "cp50221", "日\n本"),
        (b"\x1b$BF|\x1b", "iso-2022-jp", "日"),
        ("①".encode("cp932"), "x-sjis", "①"),
        ("嘅".encode("big5hkscs"), "big5", "嘅"),
        (b"\x8f\xff\xad", "euc-jp", "\ufffd\ufffd"),
    ],
)
def test_letters_beyond_the_table_that_is_named_are_read(
    content: bytes, charset: str | None, text: str
) -> None:
    assert decoded(content, charset) == text


def test_a_character_by_a_number_of_thousands_of_digits_stays_as_it_is() -> None:
    assert unescaped("Rye &amp; &#83;pelt") == "Rye & Spelt"
    assert unescaped(f"&#{'9' * 5000};") == f"&#{'9' * 5000};"


@pytest.mark.parametrize(
    "charset",
    ["unicode_escape", "Unicode-Escape", "raw_unicode_escape", "punycode", "idna", "idñna"],
)
def test_what_is_no_charset_of_a_mail_program_makes_no_other_text(charset: str) -> None:
    written = rb"xn--mnchen-3ya \u0041 abc-tea"
    assert decoded(written, charset) == written.decode()
