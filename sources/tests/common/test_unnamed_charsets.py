import pytest

from pdpp_sources.common.text import decoded, decoded_as_named
from pdpp_sources.common.unnamed_charsets import decoded_by_letters, told_charset


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("cp932", "これはテストです。よろしくお願いします"),
        ("cp949", "신선한 촛불파티에 초대합니다"),
        ("gb18030", "黄山旅游天天发,南京特价宾馆任你选"),
        ("gb18030", "如果你是AB型血型，又是一个愿捐骨髓者，请"),
        ("big5", "還在用20%的信用卡循環嗎???"),
        ("big5", "小吳您好，這是一封測試信"),
        ("cp874", "สำหรับคุณ"),
        ("koi8_r", "Десятка Анекдотов Дня"),
        ("cp1251", "Привет, как дела? Новая попытка входа"),
        ("cp1254", "İyi günler, karmaşa döneminin sonrasında nasıl"),
        ("cp1255", "שלום לכולם, מה שלומכם היום"),
    ],
)
def test_bytes_of_a_charset_that_nobody_named_are_told_by_their_letters(
    charset: str, text: str
) -> None:
    assert told_charset(text.encode(charset)) == charset
    assert decoded_as_named(text.encode(charset), "DEFAULT_CHARSET") is None
    assert decoded_by_letters(text.encode(charset)) == text


def test_letters_beyond_the_table_that_is_told_are_read() -> None:
    text = "小吳您好，這是一封測試信，恒碁裏"
    assert told_charset(text.encode("cp950")) == "big5"
    assert decoded_by_letters(text.encode("cp950")) == text


def test_a_line_of_a_file_is_never_told_by_its_letters() -> None:
    lines = ["Новая попытка входа", "Привет"]
    assert [decoded(line.encode("cp1251")) for line in lines] == ["Íîâàÿ ïîïûòêà âõîäà", "Ïðèâåò"]


@pytest.mark.parametrize(
    "content",
    [
        "Ärger über Größe und Öl, süß".encode("cp1252"),
        "Le dernier sondage, l'été déjà « çà » œuvre".encode("cp1252"),
        "Það er ýmislegt í fréttum um þetta mál, og það á íslensku".encode("cp1252"),
        "ÄÖÜ ÄÖÜß £5 ©®™ “quotes” – dash… € 50".encode("cp1252"),
        "ÉÉÉÉÉÉ".encode("cp1252"),
        "ñandú año mañana".encode("cp1252"),
        "Größe über alles, schön und süß ".encode() + b"\xe9",
        "你好世界，欢迎光临".encode()[:-1],
        b"plain",
        b"",
    ],
)
def test_western_letters_and_damaged_utf_8_are_none_of_these(content: bytes) -> None:
    assert told_charset(content) is None


def test_japanese_letters_without_escapes_are_not_of_the_charset_of_escapes() -> None:
    text = "専門 いつまで営業できるかわかりません"
    assert decoded_as_named(text.encode("cp932"), "iso-2022-jp") is None
    assert decoded_by_letters(text.encode("cp932")) == text
