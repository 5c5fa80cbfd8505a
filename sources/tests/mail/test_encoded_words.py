import pytest

from pdpp_sources.mail.encoded_words import decode_words


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("plain", "plain"),
        ("=?utf-8?b?w4RwZmVsIHVu?= =?utf-8?b?ZCBCaXJuZW4=?=", "Äpfel und Birnen"),
        ("=?gb2312?B?1tC?= =?gb2312?B?xA==?=", "中\ufffd"),
        ("Łódź =?iso-8859-2?q?=B1?= (=?utf-8*en?q?a_b?=)", "Łódź ą (a b)"),
        ("café =?x-unheard-of?q?na=EFve?=", "café naïve"),
        ("C:\\users =?utf-8?q?=C3=A4?=", "C:\\users ä"),
        ("=?iso-8859-1?q?=C3=A4?= named wrongly", "ä named wrongly"),
        ("=?utf-8?b?x?= broken", "=?utf-8?b?x?= broken"),
        ("=?utf-8?b?x?= =?utf-8?q?=C3=A4?=", "=?utf-8?b?x?= ä"),
        ("=?iso-2022-jp?b?GyRCLSEbKEI=?=", "①"),
        ("=?UTF-8?Q?a?==?UTF-8?Q?b?=", "ab"),
    ],
)
def test_encoded_words_are_decoded(header: str, text: str) -> None:
    assert decode_words(header) == text
