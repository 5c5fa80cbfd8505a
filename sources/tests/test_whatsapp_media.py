from __future__ import annotations

import pytest

from pdpp_sources.whatsapp_media import SentFile, is_sent_by_a_person, left_out


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("image omitted", "image/*"),
        ("Immagine omessa.", "image/*"),
        ("видео отсутствует", "video/*"),
        ("오디오 생략됨", "audio/*"),
        ("<GIF omitido>", "image/gif"),
        ("Kontaktkarte ausgelassen", "text/vcard"),
    ],
)
def test_what_an_iphone_writes_in_place_of_media(text: str, kind: str) -> None:
    assert left_out(text, is_marked=True) == SentFile(mime_type=kind)


def test_a_document_has_its_name() -> None:
    assert left_out("Notes 2.zip document omitted", is_marked=True) == SentFile(
        "Notes 2.zip", "application/zip"
    )
    assert left_out("document omitted", is_marked=True) == SentFile()


def test_words_that_people_typed_stand_for_nothing() -> None:
    assert left_out("image omitted", is_marked=False) is None
    assert left_out("Ada created group x", is_marked=True) is None


def test_a_caption_stands_below_what_was_left_out() -> None:
    assert left_out("<Media omitted>\nAt the lake", is_marked=False) == SentFile()
    assert left_out("image omitted\nAt the lake", is_marked=True) == SentFile(mime_type="image/*")
    assert left_out("<div>\n</div>", is_marked=False) is None
    assert left_out("At the lake\n<Media omitted>", is_marked=False) is None


def test_polls_and_places_are_sent_by_people() -> None:
    assert is_sent_by_a_person("POLL:\nWhen?")
    assert is_sent_by_a_person("Location: https://maps.google.com/?q=1,2")
    assert not is_sent_by_a_person("Ada: renamed the group")
