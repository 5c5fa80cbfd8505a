"""The model tells what the package that it comes from tells."""

from __future__ import annotations

from typing import cast

import pytest
from msgspec.structs import replace
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from personal_server.domain.language_batches import APART, LanguageBatches
from personal_server.domain.language_model import IDENTIFIER, LanguageModel, content_of
from personal_server.domain.language_model_file import read_model
from personal_server.domain.language_names import STEMLESS, STEMMERS
from server.tests.domain.test_text_language import SAID, STEMMED_BY_NONE, STRANGE

TEXTS = (*SAID.values(), *STEMMED_BY_NONE, *STRANGE, "Zdravo svima, šaljem vam račun za struju")


@pytest.fixture(scope="module")
def package() -> LanguageIdentifier:
    """Its own reading of the model, of the same languages."""
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages([*STEMMERS, *STEMLESS.split()])
    return identifier


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_language_and_how_sure_it_is(package: LanguageIdentifier, text: str) -> None:
    code, confidence = package.classify(text)
    if confidence > 1 / len(STEMMERS):  # below that nothing was found
        assert IDENTIFIER.classify(text) == (code, pytest.approx(confidence, abs=0.002))


def test_a_text_without_any_feature_is_in_no_language() -> None:
    assert IDENTIFIER.classify("") == (IDENTIFIER.classify("/" * 64)[0], 0.0)


def test_many_texts_side_by_side_are_told_as_each_alone() -> None:
    texts = [text[start : start + 64] for text in TEXTS for start in range(0, 60, 7)]
    texts += ["", *texts[::3], *map(str.upper, texts[::5])]
    alone = [IDENTIFIER.classify(text) for text in texts]
    at_once = list(LanguageBatches(read_model()).classify([*map(content_of, texts)]))
    assert [code for code, _ in at_once] == [code for code, _ in alone]
    assert [sure for _, sure in at_once] == pytest.approx([sure for _, sure in alone])
    assert list(IDENTIFIER.classify_all(texts, 1_000_000)) == alone
    assert list(IDENTIFIER.classify_all(texts, 0)) == at_once


def test_no_feature_holds_what_stands_between_texts() -> None:
    assert APART not in read_model().labels


def test_other_threads_find_no_state_that_is_half_made() -> None:
    """A search of another thread may look between any two steps."""
    seen: list[bool] = []

    class Features:
        def __getitem__(self, number: int) -> int:
            seen.append(number in model._states)  # pyright: ignore[reportPrivateUsage]
            return kept.features[number]

    kept = read_model()
    watched = cast("memoryview", Features())
    model = LanguageModel(replace(kept, features=watched))
    assert model.classify("lettera") == IDENTIFIER.classify("lettera")
    assert seen
    assert not any(seen)
