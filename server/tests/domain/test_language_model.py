"""The model tells what the package that it comes from tells."""

from __future__ import annotations

import pytest
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from personal_server.domain.language_model import IDENTIFIER
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
