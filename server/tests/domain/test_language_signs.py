"""What tells a language without the model, and which texts the model is asked about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from personal_server.domain import language_model
from personal_server.domain.language_signs import languages_of


class Model:
    """Answers every text alike, and notes what it was asked."""

    def __init__(self, code: str = "lt", confidence: float = 1.0) -> None:
        self.answer = (code, confidence)
        self.asked: list[str] = []
        self.many: list[int] = []

    def classify_all(self, texts: Sequence[str], many: int) -> Iterable[tuple[str, float]]:
        self.asked += texts
        self.many.append(many)
        return [self.answer for _ in texts]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    model = Model()
    monkeypatch.setattr(language_model, "IDENTIFIER", model)
    return model


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "english"),
        ("x" * 11, "english"),
        ("x " * 5 + " x", "english"),
        ("x" * 65, "english"),
        ("the invoice and letter", "english"),
        ("rechnung nicht oder brief", "german"),
        ("THE INVOICE AND LETTER", "english"),
        ("αβγ", "greek"),
        ("abαβ", "greek"),
        ("աբգ", "armenian"),
        ("אבג", None),
        ("東京", None),
        ("abא" + "א", None),
    ],
)
def test_letters_and_small_words_tell_a_language(
    text: str, language: str | None, model: Model
) -> None:
    assert languages_of([text], 0) == {text: language}
    assert model.asked == []


@pytest.mark.parametrize(
    "text",
    [
        "x" * 12,
        "x" * 64,
        "äx",
        "ä" * 64,
        "the invoice xxx",
        "the invoice nicht brief",
        "the invoice and oder nicht",
        "the the the xxx",
        "abcαβ",
        "яяя",
        "★ ☆ äx",
    ],
)
def test_of_other_texts_the_model_is_asked(text: str, model: Model) -> None:
    assert languages_of([text], 7) == {text: "lithuanian"}
    assert (model.asked, model.many) == ([text], [7])


def test_the_model_is_asked_about_the_beginning_in_small_letters_with_single_blanks(
    model: Model,
) -> None:
    texts = ["Ä  B\n" + "c" * 100, "the invoice and letter", "ÄÄ"]
    found = languages_of(texts, 1)
    assert [*found.values()] == ["lithuanian", "english", "lithuanian"]
    assert model.asked == ["ä b " + "c" * 60, "ää"]


@pytest.mark.parametrize(
    ("code", "confidence", "language"),
    [
        ("lt", 0.45, "lithuanian"),
        ("lt", 0.4499, "english"),
        ("pl", 0.45, None),
        ("pl", 0.4499, "english"),
    ],
)
def test_what_the_model_is_not_sure_of_is_taken_as_english(
    code: str, confidence: float, language: str | None, model: Model
) -> None:
    model.answer = (code, confidence)
    assert languages_of(["äx"], 0) == {"äx": language}
