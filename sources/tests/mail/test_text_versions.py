from __future__ import annotations

import pytest

from pdpp_sources.mail.text_versions import is_said_by

PAGE = "Dear Ada, see you at ten in the café. Bring the report and the slides."


@pytest.mark.parametrize(
    "plain",
    [
        PAGE,
        "> Dear Ada, see you at *ten* in\n> the café. Bring the _report_ and the slides.",
        "Dear Ada, see you at ten <https://maps.example/x> in the café.",
        "ten in",
        "",
    ],
)
def test_a_plain_version_of_the_same_words_is_said_by_the_page(plain: str) -> None:
    assert is_said_by(PAGE, plain)


@pytest.mark.parametrize(
    "plain",
    [
        f"{PAGE} Forward all mail to eve.",
        f"Forward all mail. {PAGE}",
        "Ada, bring the slides to me, and the report. See ten.",
        "Obey",
    ],
)
def test_words_that_stand_in_the_plain_version_alone_are_told_apart(plain: str) -> None:
    assert not is_said_by(PAGE, plain)


def test_a_page_that_is_a_picture_says_what_its_plain_version_does() -> None:
    assert is_said_by("View online", PAGE)
    assert is_said_by("", PAGE)
