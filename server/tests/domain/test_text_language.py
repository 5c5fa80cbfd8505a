"""The language of a text: by its letters, its small words, or the model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator

import pytest

from personal_server.domain import text_language
from personal_server.domain.language_names import STEMLESS, STEMMERS
from personal_server.domain.language_signs import FOREIGN
from personal_server.domain.text_language import foretell, language_of, take_room

# Greetings and short notes, as they stand in mails and chats.
SAID = {
    "catalan": "Bon dia, us envio la factura del mes passat i les fotografies",
    "danish": "Hej, jeg kommer desværre ikke hjem før klokken otte i aften",
    "german": "Guten Morgen, anbei die Rechnung vom letzten Monat zur Prüfung",
    "greek": "Καλημέρα, σας στέλνω το τιμολόγιο του προηγούμενου μήνα",
    "english": "Good morning, please find attached the invoice of last month",
    "spanish": "Buenos días, le envío la factura del mes pasado para su revisión",
    "estonian": "Tere hommikust, saadan teile eelmise kuu arve ja pildid",
    "basque": "Egun on, joan den hileko faktura bidaltzen dizut eta argazkiak",
    "finnish": "Hyvää huomenta, lähetän teille viime kuun laskun ja kuvat",
    "french": "Bonjour, veuillez trouver la facture du mois dernier en pièce jointe",
    "irish": "Dia duit ar maidin, tá an sonrasc don mhí seo caite ag gabháil leis seo",
    "hungarian": "Jó reggelt, küldöm a múlt havi számlát és a fényképeket",
    "armenian": "Բարի լույս, ուղարկում եմ անցած ամսվա հաշիվը",
    "indonesian": "Selamat pagi, saya kirimkan tagihan bulan lalu untuk diperiksa",
    "italian": "Buongiorno, le invio la fattura del mese scorso per il controllo",
    "lithuanian": "Labas rytas, siunčiu jums praėjusio mėnesio sąskaitą",
    "dutch": "Goedemorgen, hierbij stuur ik u de factuur van afgelopen maand",
    "norwegian": "God morgen, jeg sender deg fakturaen for forrige måned og bildene",
    "portuguese": "Bom dia, envio em anexo a fatura do mês passado, não se esqueça",
    "romanian": "Bună dimineața, vă trimit factura de luna trecută și pozele",
    "russian": "Доброе утро, отправляю вам счёт за прошлый месяц",
    "serbian": "Добро јутро, шаљем вам рачун за прошли месец",
    "swedish": "God morgon, jag skickar dig fakturan för förra månaden och bilderna",
    "turkish": "Günaydın, geçen ayın faturasını ve fotoğrafları gönderiyorum",
}
STEMMED_BY_NONE = (
    "Dzień dobry, przesyłam fakturę za zeszły miesiąc",
    "Dobré ráno, posílám vám fakturu za minulý měsíc",
    "Доброго ранку, надсилаю вам рахунок за минулий місяць",
    "Chào buổi sáng, tôi gửi cho bạn hóa đơn tháng trước",
    "お世話になっております。先月の請求書をお送りします。",
    "早上好，随信附上上个月的发票",
    "좋은 아침입니다, 지난달 청구서를 보내드립니다",
    "صباح الخير، أرسل إليكم فاتورة الشهر الماضي",
    "בוקר טוב, מצורפת החשבונית של החודש שעבר",
    "สวัสดีตอนเช้า ฉันส่งใบแจ้งหนี้ของเดือนที่แล้วมาให้",
    "დილა მშვიდობისა, გიგზავნით გასული თვის ინვოისს",
)
STRANGE = (
    "Re: [ILUG] apt-get",
    "Invoice 2026-0042",
    "https://example.org/a/b?c=d&e=f#g",
    "def main(argv: list[str]) -> int: return 0",
    "0123456789 " * 20,
    "— … – • ★ ☆ 😀😀😀",
    "\0\x01\x02\ud800\udfff\ufffe",
    "<div style='color:red'>",
    "x" * 10_000,
)


def test_every_language_with_a_stemmer_is_tried() -> None:
    assert set(SAID) == set(STEMMERS.values())
    assert not {*STEMLESS.split()} & STEMMERS.keys()


@pytest.mark.parametrize("language", SAID)
def test_a_short_note_is_told(language: str) -> None:
    assert language_of(SAID[language]) == language
    assert language_of(SAID[language].upper()) == language


@pytest.mark.parametrize("text", STEMMED_BY_NONE)
def test_one_without_a_stemmer_has_none(text: str) -> None:
    assert language_of(text) is None


# Texts with words that the list of a neighbour has.
LIKE_ANOTHER = {
    "Нас двоје долазимо сутра, а они ће после ручка код вас или код Ане": "serbian",
    "Да ли су они већ стигли кући без тебе или чекају на станици под сатом": "serbian",
    "Здравейте, изпращам ви фактурата без подпис, или утре ще я донеса над обяд": None,
    "Надсилаю вам рахунок за минулий місяць, він без підпису, але над ним ще працюють": None,
    "Ви ја испраќам фактурата за минатиот месец без потпис, или утре ќе ја донесам": None,
    "Per la casa i per a tothom, hem comprat fruita per sopar": "catalan",
    "Нас там не было, мы все поехали в город под вечер, а она осталась одна": "russian",
}


@pytest.mark.parametrize("text", LIKE_ANOTHER)
def test_words_that_a_neighbour_has_too_do_not_tell_a_language(text: str) -> None:
    assert language_of(text) == LIKE_ANOTHER[text]


@pytest.mark.parametrize("text", STRANGE)
def test_what_is_in_no_language_is_taken_as_english(text: str) -> None:
    assert language_of(text) == "english"


def test_foreign_names_in_a_text_are_not_its_language() -> None:
    assert language_of("Please write Αθήνα and 東京 on the labels of the boxes") == "english"


def test_texts_are_told_at_once_as_each_alone() -> None:
    texts = [*SAID.values(), *STEMMED_BY_NONE, *STRANGE, *LIKE_ANOTHER]
    texts = [text[start:] for text in texts for start in (0, 9)]
    alone = [*map(language_of, texts)]
    foretell(str(number) for number in range(5_000))  # more than are known at once
    foretell(texts)
    assert [*map(language_of, texts)] == alone


class Told:
    """Tells every text to be English, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.many: list[int] = []

    def languages_of(self, heads: Iterable[str], many: int) -> dict[str, str | None]:
        heads = list(heads)
        self.asked += heads
        self.many.append(many)
        return dict.fromkeys(heads, "english")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    told = Told()
    monkeypatch.setattr(text_language, "languages_of", told.languages_of)
    text_language._KNOWN.clear()  # pyright: ignore[reportPrivateUsage]
    yield told
    text_language._KNOWN.clear()  # pyright: ignore[reportPrivateUsage]


def test_a_text_is_asked_about_once_by_its_first_200_characters(told: Told) -> None:
    head = "x" * 200
    for text in (head, head + "a", head + "b", head[:199], head[:199] + "y"):
        assert language_of(text) == "english"
    foretell([head + "c", "another"])
    foretell([head])
    assert told.asked == [head, head[:199], head[:199] + "y", "another"]


@pytest.mark.parametrize(("more", "asked"), [(0, 0), (1, 3)])
def test_4096_are_known_at_once_and_then_all_asked_about_anew(
    told: Told, more: int, asked: int
) -> None:
    foretell(str(number) for number in range(4_095))
    for text in ["a", *"b"[:more]]:
        language_of(text)
    told.asked.clear()
    for text in ("0", "4094", "a"):
        language_of(text)
    assert len(told.asked) == asked


def test_a_process_that_ends_with_its_work_takes_room_earlier(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert type(text_language._KNOWN).many == 4_000  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(text_language._KNOWN, "many", 4_000)  # pyright: ignore[reportPrivateUsage]
    language_of("a")
    take_room()
    language_of("b")
    assert told.many == [4_000, 500]


def test_letters_of_other_scripts_are_looked_for_among_all_letters() -> None:
    other = (chr(code) for code in range(0x370, sys.maxunicode + 1))
    assert not [letter for letter in other if letter.isalpha() and not FOREIGN.match(letter)]


def test_the_model_is_read_from_memory_and_only_where_a_text_needs_it() -> None:
    """On a read-only system no directory takes a temporary file."""
    program = """
import sys, tempfile
from personal_server.domain.text_language import language_of
tempfile.tempdir = "/nowhere"
assert language_of("Please find the invoice of last month and that of this one") == "english"
assert language_of("Re: ok") == "english"
assert "personal_server.domain.language_model" not in sys.modules and "numpy" not in sys.modules
assert language_of("Labas rytas, siunčiu jums praėjusio mėnesio sąskaitą") == "lithuanian"
assert "personal_server.domain.language_model" in sys.modules and "numpy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
