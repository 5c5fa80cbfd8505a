"""What needs no mailbox of the questions is asked over stdio, of real archives, in five views."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.samples import SampleUnavailable
from tests.journeys.questions.archives import archives, served
from tests.journeys.questions.asking import MOST_CALLS
from tests.journeys.questions.outcomes import all_asked, questions


# `test_sources` asks both faces of every source; these ask the same of views, for minutes.
@pytest.mark.long
def test_every_question_is_answered_in_two_calls(tmp_path: Path) -> None:
    try:
        archives(with_mail=False)
    except SampleUnavailable as error:
        pytest.skip(str(error))
    with served(tmp_path, with_mail=False) as home:
        outcomes = list(all_asked(home, with_mail=False))
    assert [
        (each.question.words, each.view.name, each.fault) for each in outcomes if each.fault
    ] == []
    assert max(each.calls for each in outcomes) <= MOST_CALLS


def test_there_are_ninety_questions_of_many_kinds() -> None:
    assert len(questions) >= 90
    assert len({each.words for each in questions}) == len(questions)
    assert len({each.kind for each in questions}) >= 50
