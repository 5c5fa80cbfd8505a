"""Media that a chat of WhatsApp names and that its export left out, and what else people send.

An iPhone writes `image omitted` in the language of the phone, behind a mark that nobody types;
Android says `<Media omitted>` of whatever it was.
Source: exports of both, and WhatsApp's own texts in these languages.
"""

from __future__ import annotations

import re

import msgspec

from pdpp_sources.common.attachments import kind_of

MARK = "\u200e"
_IN_BRACKETS = re.compile(r"<([^<>\n]{3,50})>")
# With a caption below it; anything else in brackets there is as well what somebody wrote.
_ABOVE_CAPTION = re.compile(r"<[^\W\d_]+(?: [^\W\d_]+)+>")
_IMAGE, _VIDEO, _AUDIO = "image/*", "video/*", "audio/*"
_WORDS = {
    _IMAGE: (
        "image omitted|Bild weggelassen|imagen omitida|image absente|immagine omessa"
        "|imagem ocultada|imagem não revelada|afbeelding weggelaten|obraz pominięty"
        "|изображение отсутствует|зображення відсутнє|görüntü dahil edilmedi|bild utesluten"
        "|billede udeladt|bilde ikke inkludert|Imagine omisă|obrázek vynechán|obrázok vynechaný"
        "|slika izostavljena|Imatge omesa|εικόνα παραλείφθηκε|gambar tidak disertakan"
        "|imej tidak dimasukkan|đã bỏ qua hình ảnh|画像は含まれていません|이미지 생략됨"
        "|圖片已略去|圖像已省略|照片已忽略|फ़ोटो हटाई गई|لم يتم إدراج الصورة|התמונה הושמטה"
    ),
    _VIDEO: (
        "video omitted|video note omitted|Video weggelassen|Videonotiz weggelassen|Video omitido"
        "|vidéo absente|video omesso|vídeo omitido|vídeo não revelado|video weggelaten"
        "|wideo pominięte|видео отсутствует|відео відсутнє|video dahil edilmedi|video utesluten"
        "|video udeladt|video utelatt|clip video omis|video vynecháno|video vynechané"
        "|video izostavljen|vídeo omès|βίντεο παραλείφθηκε|video tidak disertakan"
        "|video tidak dimasukkan|đã bỏ video|ビデオは含まれていません|비디오 생략됨|影片已略去"
        "|影片已省略|视频已忽略|वीडियो छोड़ा गया|لم يتم إدراج الفيديوهات|סרטון הווידאו הושמט"
    ),
    _AUDIO: (
        "audio omitted|Audio weggelassen|audio omitido|audio omis|audio omesso|áudio ocultado"
        "|ficheiro de áudio não revelado|audio weggelaten|audio pominięte|аудиофайл отсутствует"
        "|аудіо відсутнє|ses dahil edilmedi|ljud utelslutet|lyd udeladt|lyd utelatt|fără audio"
        "|zvukový soubor vynechán|zvuk vynechaný|zvuk izostavljen|Àudio omès|ήχος παραλείφθηκε"
        "|audio tidak disertakan|audio tidak dimasukkan|bỏ qua tệp âm thanh"
        "|音声は含まれていません|오디오 생략됨|音訊已略去|音訊已省略|音频已忽略|ऑडियो हटाई गयी"
        "|لم يتم إدراج المقاطع الصوتية|קטע קול הושמט"
    ),
    "image/webp": (
        "sticker omitted|Sticker weggelassen|sticker omitido|sticker omis|sticker non incluso"
        "|figurinha omitida|sticker não revelado|sticker weggelaten|pominięto naklejkę"
        "|стикер не добавлен|Наклейку не додано|Çıkartma dahil edilmedi|sticker utesluten"
        "|klistermærke udeladt|klistremerke utelatt|nálepka vynechána|nálepka vynechaná"
        "|naljepnica izostavljena|adhesiu omès|αυτοκόλλητο παραλήφθηκε|stiker tidak disertakan"
        "|pelekat tidak disertakan|đã bỏ sticker|スタンプは含まれていません|스티커 제외됨"
        "|貼圖已略去|貼圖已忽略|贴图已省略|स्टिकर छोड़ा गया|تم حذف الملصقات|סטיקר הושמט"
    ),
    "image/gif": (
        "GIF omitted|GIF weggelassen|GIF omitido|GIF retiré|GIF esclusa|GIF não revelada"
        "|GIF weggelaten|Plik GIF pominięty|GIF отсутствует|GIF-анімацію пропущено"
        "|GIF dahil edilmedi|GIF utesluten|GIF udeladt|GIF utelatt|GIF omis|GIF vynechán"
        "|GIF vynechaný|GIF izostavljen|GIF omès|Παράληψη GIF|GIF tidak disertakan"
        "|GIF tidak dimasukkan|Đã bỏ qua ảnh GIF|GIFは含まれていません|GIF 생략됨|GIF 已略去"
        "|GIF 圖片已被省略|GIF 动态图已被忽略|GIF छोड़ा गया|لم يتم إدراج صورة GIF|GIF הושמט"
    ),
    "text/vcard": (
        "Contact card omitted|Kontaktkarte ausgelassen|Tarjeta de contacto omitida"
        "|Fiche contact manquante|Scheda contatto omessa|Cartão do contato omitido"
        "|Contacto não revelado|Visitekaartje weggelaten|Pominięta wizytówka kontaktu"
        "|Карточка контакта отсутствует|Картка контакту відсутня|Kişi kartı dahil edilmedi"
        "|Kontaktkort uteslutet|Kontaktkort udeladt|Kontaktkort sløyfet"
    ),
}
_DOCUMENTS = (
    "document omitted|Dokument weggelassen|documento omitido|document manquant|documento omesso"
    "|documento não revelado|document weggelaten|dokument pominięty|документ отсутствует"
    "|документ пропущено|belge dahil edilmedi|dokument uteslutet|dokument udeladt"
    "|utelatt dokument|document omis|dokument vynechán|dokument vynechaný|dokument izostavljen"
    "|Document omès|έγγραφο παραλείφθηκε|dokumen tidak disertakan|dokumen tidak dimasukkan"
    "|đã bỏ qua tài liệu|ドキュメントは含まれていません|문서 생략됨|文件已略去|文件已忽略"
    "|文档已省略|डॉक्यूमेंट छोड़ा गया|لم يتم إدراج المستند|מסמך הושמט"
)
_KINDS = {word.casefold(): kind for kind, words in _WORDS.items() for word in words.split("|")}
# `Bill.pdf • 2 pages document omitted`, `Notes.zip document omitted`, or these words alone.
_DOCUMENT = re.compile(
    rf"(?:(?P<name>[^\n]{{1,300}}?)(?: • [^\n]{{1,40}}?)? )?(?:{_DOCUMENTS})", re.IGNORECASE
)
# What the phone writes on behalf of a person: a poll (its word in capitals), a place and its link.
_SENT_BY_A_PERSON = re.compile(r"(?P<poll>[^\W\d_]{3,20}):(?:\n|$)|[^\n:]{3,300}: https://\S+$")
# A call, missed or with its length: `Missed voice call`, `Video call, 5 min`.
_CALL = re.compile(
    r"\bcall\b|anruf\b|llamada\b|\bappel\b|chiamata\b|chamada\b|oproep\b|połączenie|звонок|дзвінок"
    r"|\barama|samtal|opkald|\banrop|panggilan|cuộc gọi|通話|通话|통화|कॉल|مكالمة|שיחת",
    re.IGNORECASE,
)
# A name that somebody gave may hold such a word, and so does what is said of encryption.
_NO_CALL = re.compile(
    r"[\"“”„‟‘‚«»‹›「」『』《》״]|encrypt|verschlüssel|cifrad|criptograf|chiffr|crittograf|versleutel"
    r"|szyfrow|шифр|şifre|krypter|enkripsi|sulitkan|mã h(?:óa|oá)|加密|暗号|암호|एन्क्रिप्ट"
    r"|تشفير|مشفر|מוצפנ|הצפנה",
    re.IGNORECASE,
)
_LONGEST_CALL_CHARS = 60


class SentFile(msgspec.Struct, frozen=True):
    """A file that was sent, as a chat names it; what is not known of it is `None`.

    Shapes: `mime_type` may be a range, `image/*`.
    """

    filename: str | None = None
    mime_type: str | None = None


def left_out(text: str, *, is_marked: bool) -> SentFile | None:
    """The file in whose place the first line of a text stands; a caption may follow.

    In: `Bill.pdf • 2 pages document omitted`, `is_marked` by the program. Out: `Bill.pdf`, a PDF.
    In: `<Media omitted>`. Out: a file of which nothing is known. In: `image omitted` without a
    mark, as people type it. Out: `None`.
    """
    line, _, caption = text.partition("\n")
    bracketed = (_ABOVE_CAPTION if caption else _IN_BRACKETS).fullmatch(line)
    words = line.strip("<>") if bracketed else line
    if not (bracketed or is_marked):
        return None
    if kind := _KINDS.get(words.casefold().rstrip(".")):
        return SentFile(mime_type=kind)
    document = _DOCUMENT.fullmatch(words.rstrip("."))
    if document is not None:
        return SentFile(document["name"], kind_of(document["name"]))
    return SentFile() if bracketed else None


def is_sent_by_a_person(text: str) -> bool:
    """Whether the program wrote a text down on behalf of who sent it."""
    match = _SENT_BY_A_PERSON.match(text)
    return match is not None and (match["poll"] is None or match["poll"].isupper())


def is_call(text: str) -> bool:
    """Whether a notice tells of a call, which whoever it stands beside made.

    In: `Missed voice call`. Out: true. In: `Ada created group “Call Center”`. Out: false.
    """
    if len(text) > _LONGEST_CALL_CHARS or _NO_CALL.search(text):
        return False
    return _CALL.search(text) is not None
