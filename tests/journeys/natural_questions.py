"""Questions as people type them, made of what an archive holds: its words, subjects and people.

Some have a slip of the finger in one word, some name something that nobody wrote of.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

WORD = re.compile(r"[A-Za-z]{5,12}")
ABOUT = (
    "What did {person} write about {word}?",
    "the mail from {person} on {subject}",
    "Who wrote about {word} and {other}?",
    "Did {person} ever mention the {word}?",
    "Which message said that the {word} was {other}?",
    "Can you find the discussion of {subject}",
    "that thing about {word} with the {other}",
    "{subject}",
    "{word} {other}",
    "when did we talk about {word}",
)
PAID = ("How much did I pay {payee}?", "my last payment to {payee}", "{payee} {memo}")
UNHEARD_OF = ("sourdough", "orthodontist", "trampoline", "Reykjavik", "saxophonist", "beekeeping")
PAID_EVERY, SLIP_EVERY, UNHEARD_EVERY = 10, 4, 7


@dataclass(frozen=True, slots=True)
class Archive:
    """What questions are made of."""

    people: Sequence[str]
    subjects: Sequence[str]
    words: Sequence[str]
    payments: Sequence[tuple[str, str]]


def archive_of(mails: Sequence[dict[str, Any]], payments: Sequence[dict[str, Any]]) -> Archive:
    """The people, subjects and words of records."""
    subjects = {re.sub(r"^(?:\w+: |\[\w+\] )+", "", mail["subject"] or "") for mail in mails}
    words = {word for mail in mails for word in WORD.findall(mail["body"] or "")[:60]}
    return Archive(
        sorted({mail["from_name"] for mail in mails if mail["from_name"]}),
        sorted(subject for subject in subjects if len(WORD.findall(subject)) > 1),
        sorted(words),
        sorted({(each["payee"] or "", each["memo"] or "") for each in payments}),
    )


def natural_questions(archive: Archive, count: int, seed: int) -> Iterator[str]:
    """So many questions, the same ones for the same seed."""
    draw = random.Random(seed)
    for number in range(count):
        asked = _asked(archive, draw, number)
        yield _slipped(asked, draw) if number % SLIP_EVERY == 1 else asked


def _asked(archive: Archive, draw: random.Random, number: int) -> str:
    if number % PAID_EVERY == 0 and archive.payments:
        payee, memo = draw.choice(archive.payments)
        return draw.choice(PAID).format(payee=payee, memo=memo)
    word, other = draw.sample(archive.words, 2)
    if number % UNHEARD_EVERY == 2:
        other = draw.choice(UNHEARD_OF)
    return draw.choice(ABOUT).format(
        person=draw.choice(archive.people),
        subject=draw.choice(archive.subjects),
        word=word,
        other=other,
    )


def _slipped(asked: str, draw: random.Random) -> str:
    """The question with two neighbouring letters of one long word in the wrong order."""
    found = draw.choice(WORD.findall(asked) or [asked[:1]])
    if len(found) < 5:
        return asked
    at = draw.randrange(1, len(found) - 2)
    wrong = found[:at] + found[at + 1] + found[at] + found[at + 2 :]
    return asked.replace(found, wrong, 1)
