"""Every question in every view, and what is wrong with its answer if anything."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass

import httpx2

from demo.__main__ import Home
from tests.journeys.questions.archives import facts_of, token_of
from tests.journeys.questions.asked_again_questions import asked_again_questions
from tests.journeys.questions.asking import MOST_CALLS, Facts, Host, Json, Question
from tests.journeys.questions.people_questions import people_questions
from tests.journeys.questions.plain_questions import plain_questions
from tests.journeys.questions.silent_questions import silent_questions
from tests.journeys.views import View, views
from tests.requirements.doors import Result, StdioWire, environment, greeting_request

questions = (*plain_questions, *silent_questions, *people_questions, *asked_again_questions)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one question went in one view: calls, the longest face, what is wrong if anything."""

    question: Question
    view: type[View]
    calls: int
    chars: int
    fault: str


def asked(host: Host, facts: Facts, question: Question) -> Outcome:
    try:
        answer, wanted = question.ask(host, facts), question.truth(facts)
        fault = "" if answer == wanted else f"{str(answer)[:150]} is not {str(wanted)[:150]}"
        if not fault and host.calls > MOST_CALLS:
            fault = f"{host.calls} calls"
    except Exception as error:  # noqa: BLE001 - one question is one line of the table
        fault = f"{type(error).__name__} {error}"[:300]
    return Outcome(question, host.view, host.calls, host.chars, fault)


def all_asked(home: Home, *, with_mail: bool) -> Generator[Outcome]:
    """Every question of the archives that are there, in every view."""
    headers = {"Authorization": f"Bearer {token_of(home)}"}
    wire = StdioWire(
        ["--cache-root", str(home.cache), "--provider-url", home.origin], environment()
    )
    with httpx2.Client(base_url=home.origin, headers=headers, timeout=240) as http:
        facts, known = facts_of(http), dict[str, Json]()
        wire.exchange(*greeting_request("2025-11-25"))
        schema = wire.exchange("tools/call", {"name": "schema", "arguments": {}})
        for told in (Result(schema).text, json.dumps(Result(schema).structured)):
            assert all(rows.connection in told for rows in facts.streams.values())
        for question in questions:
            if with_mail or not question.needs_mail:
                for view in views:
                    yield asked(Host(wire, view, known), facts, question)
    wire.close()
