"""Questions with known answers over public mail and notes: what `bench.finding` asks.

Three kinds are drawn from the texts by a seed, two are written by hand from reading them, and a
last one asks for what is not there.  All stand in `questions.jsonl` beside this file, each with the
keys of the records that answer it; the texts themselves are fetched and never committed.  Half of
each kind is held out for the last run, so that nobody builds for it.

Usage: python -m bench.questions RECORDS.ndjson   (draws the three kinds anew from an export)
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".jsonl")
KINDS = ("exact", "inflected", "mistyped", "paraphrased", "other language", "absent")
DRAWN = KINDS[:3]
SEED = 2002
EACH = 70
NOTES_OF_EACH = 14
MOST_ANSWERS = 3
LETTERS = "abcdefghijklmnopqrstuvwxyz"
ENDINGS = ("", "s", "es", "ed", "d", "ing", "ion", "ions")
WORD = re.compile(r"\w+")
# a word of its own, no part of an address or of what a hyphen joins
PLAIN = re.compile(r"(?<![\w'/.@:=&?%$#<-])[a-z]+(?![\w'/@:=&%-]|\.\w)")
PHRASE = re.compile(r"(?<![\w'-])[A-Za-z]{2,}(?: [A-Za-z]{2,}){3}(?![\w'-])")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and which records (`stream/key`) answer it; an absent thing has none."""

    kind: str
    ask: str
    answers: tuple[str, ...]
    held_out: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A record: its words as the index may have them, and what its writer wrote in it."""

    key: str
    words: frozenset[str]
    joined: str
    own: str


def questions() -> tuple[Question, ...]:
    """All questions, as they were committed before any index was asked them."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return tuple(_question(json.loads(line)) for line in lines)


def main() -> int:
    """Draw the first three kinds from an export and keep the others."""
    [export] = sys.argv[1:]
    corpus = Corpus(list(_texts(Path(export))))
    kept = [each for each in questions() if each.kind not in DRAWN]
    write([*corpus.drawn(), *kept])
    return 0


def write(asked: Sequence[Question]) -> None:
    """Keep questions, the first of every two of a kind for the last run."""
    lines: list[str] = []
    for kind in KINDS:
        of_kind = [each for each in asked if each.kind == kind]
        for number, each in enumerate(of_kind):
            said: dict[str, Any] = {"kind": kind, "ask": each.ask, "answers": each.answers}
            if number % 2 == 0:
                said["held_out"] = True
            lines.append(json.dumps(said, ensure_ascii=False))
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Corpus:
    """The texts, and in how many of them each word stands."""

    def __init__(self, texts: Sequence[Text]) -> None:
        self._texts = texts
        self._holders: defaultdict[str, set[str]] = defaultdict(set)
        for text in texts:
            for word in text.words:
                self._holders[word].add(text.key)
        self._draw = random.Random(SEED)
        self._shapes = _shapes(self._holders)

    def drawn(self) -> Iterator[Question]:
        """Every kind that is drawn, from mail and notes, no record asked for twice in a kind."""
        for kind in DRAWN:
            for stream, count in (("messages", EACH - NOTES_OF_EACH), ("notes", NOTES_OF_EACH)):
                texts = [each for each in self._texts if each.key.startswith(f"{stream}/")]
                self._draw.shuffle(texts)
                found = (self._of(kind, text, number) for number, text in enumerate(texts))
                yield from [each for each in found if each is not None][:count]

    def _of(self, kind: str, text: Text, number: int) -> Question | None:
        if kind == "inflected":
            return self._inflected(text)
        if kind == "mistyped":
            return self._mistyped(text, number)
        return self._rare_words(text) if number % 3 == 0 else self._phrase(text)

    def _phrase(self, text: Text) -> Question | None:
        """Four words in a row that stand in one record, or in one and its quotation."""
        for phrase in self._some(PHRASE.findall(text.own)):
            said = f" {phrase.lower()} "
            holders = [each.key for each in self._texts if said in each.joined]
            if 0 < len(holders) < MOST_ANSWERS:
                return Question("exact", f'"{phrase}"', tuple(holders))
        return None

    def _rare_words(self, text: Text) -> Question | None:
        rare = [w for w in self._plain(text) if 1 < len(self._holders[w]) <= 5]
        if len(rare) < 2:
            return None
        words = self._draw.sample(rare, 2)
        holders = self._holders[words[0]] & self._holders[words[1]]
        if len(holders) >= MOST_ANSWERS:
            return None
        return Question("exact", " ".join(words), tuple(sorted(holders)))

    def _inflected(self, text: Text) -> Question | None:
        """A word in a form that the record lacks, beside one that stands there as it is."""
        plain = self._plain(text)
        for word in self._some(plain):
            forms = self._forms(word)
            others = sorted(f for f in forms if f not in text.words and len(self._holders[f]) > 1)
            beside = [w for w in plain if w not in forms and 1 < len(self._holders[w]) <= 60]
            if not others or not beside or len(word) < 5:
                continue
            other, context = self._draw.choice(others), self._draw.choice(beside)
            holders = set[str]().union(*(self._holders[form] for form in forms))
            holders &= self._holders[context]
            if len(holders) <= MOST_ANSWERS:
                return Question("inflected", f"{other} {context}", tuple(sorted(holders)))
        return None

    def _mistyped(self, text: Text, number: int) -> Question | None:
        """A word with one letter wrong, which is one letter from no other word."""
        for word in self._some(self._plain(text)):
            meant = set[str]().union(*(self._holders[form] for form in self._forms(word)))
            if len(word) < 6 or not 1 < len(self._holders[word]) <= len(meant) <= 6:
                continue
            typo = _typo(word, number % 4, self._draw)
            near = {known for shape in _one_off(typo) for known in self._shapes.get(shape, ())}
            near = {known for known in near if _one_apart(typo, known)}
            if typo in self._holders or near != {word}:
                continue
            if number % 8 < 4:
                return Question("mistyped", typo, tuple(sorted(meant)))
            beside = [w for w in self._plain(text) if w != word and len(self._holders[w]) <= 200]
            if beside:
                context = self._draw.choice(beside)
                holders = meant & self._holders[context]
                return Question("mistyped", f"{typo} {context}", tuple(sorted(holders)))
        return None

    def _plain(self, text: Text) -> list[str]:
        """Its words of letters, of four and more."""
        return sorted({word for word in PLAIN.findall(text.own) if 4 <= len(word) <= 16})

    def _some(self, found: Sequence[str]) -> list[str]:
        return self._draw.sample(found, min(len(found), 40))

    def _forms(self, word: str) -> set[str]:
        """Forms of a word that occur somewhere, by the commonest endings of English alone."""
        stems = {word.removesuffix(ending) for ending in ENDINGS if len(word) - len(ending) >= 4}
        stems |= {f"{stem}e" for stem in stems if stem != word}
        stems |= {stem.removesuffix("e") for stem in stems if stem.endswith("e")}
        stems = {stem for stem in stems if len(stem) >= 4 and self._is_word(stem)}
        built = {stem + ending for stem in stems for ending in ENDINGS}
        return {form for form in built if form in self._holders} | {word}

    def _is_word(self, stem: str) -> bool:
        return len(self._holders.get(stem, ())) > 1 or len(self._holders.get(f"{stem}e", ())) > 1


def _typo(word: str, way: int, draw: random.Random) -> str:
    """One letter changed places, left out, added or wrong; the first stays, as it mostly does."""
    at = draw.randrange(1, len(word) - 1)
    letter = draw.choice(LETTERS)
    if way == 0:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return word[:at] + ("", letter + word[at], letter)[way - 1] + word[at + 1 :]


def _one_off(word: str) -> set[str]:
    """The word, and the word without each of its letters: what words one letter apart share."""
    return {word} | {word[:at] + word[at + 1 :] for at in range(len(word))}


def _one_apart(one: str, other: str) -> bool:
    """Whether a letter left out, added, wrong or in its neighbour's place makes one the other."""
    if abs(len(one) - len(other)) > 1:
        return False
    if len(one) != len(other):
        short, long = sorted((one, other), key=len)
        return short in _one_off(long)
    differ = [at for at in range(len(one)) if one[at] != other[at]]
    if len(differ) == 2 and differ[1] == differ[0] + 1:
        first, second = differ
        return one[first] == other[second] and one[second] == other[first]
    return len(differ) == 1


def _shapes(words: Mapping[str, object]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for word in words:
        for shape in _one_off(word) if len(word) <= 18 else ():
            found[shape].append(word)
    return found


def _texts(export: Path) -> Iterator[Text]:
    """Messages and notes, and attachments for the count of their words."""
    with export.open(encoding="utf-8") as lines:
        for line in lines:
            said: dict[str, Any] = json.loads(line)
            if "data" in said and "stream" in said:
                yield _text(f"{said['stream']}/{said['key']}", said["data"])


def _text(key: str, data: Mapping[str, object]) -> Text:
    everything = " ".join(str(value) for value in data.values())
    words = WORD.findall(everything.lower())
    own = [
        line
        for line in str(data.get("body") or "").splitlines()
        if not line.startswith((">", "|", "}", ":", "    "))
    ]
    return Text(key, frozenset(words), f" {' '.join(words)} ", "\n".join(own))


def _question(said: Mapping[str, Any]) -> Question:
    return Question(said["kind"], said["ask"], tuple(said["answers"]), said.get("held_out", False))


if __name__ == "__main__":
    sys.exit(main())
