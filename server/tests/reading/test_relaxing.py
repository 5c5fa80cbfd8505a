"""Where too few records hold all words: what is asked further, and what is said of it."""

from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, cast
from urllib.parse import quote

import pytest

from pdpp_kernel.criteria import NamedPiece, Term
from personal_server.domain.search_words import parse_words
from personal_server.domain.spelling import likeliest, near_spellings
from personal_server.enforcement.plans import SearchPlan
from personal_server.enforcement.queries import SearchQuery
from personal_server.enforcement.scopes import Scope
from personal_server.reading import pace
from personal_server.reading.relaxing import (
    Relaxation,
    is_named,
    is_strict,
    relaxation,
    step_seconds,
    written,
)
from personal_server.reading.search import search
from personal_server.semantics.index import PassageIndex
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS, ReadSnapshot
from server.tests.resource_server.door import Door, Reply
from server.tests.resource_server.journal import (
    DIARY,
    LETTERS,
    NARROW,
    client,
    furnished,
    stream_grant,
    write,
)
from server.tests.semantics.tiny import TinyEmbedder
from tests.properties.stores import open_store

ASKED = (
    "remialer",
    "remialer rain",
    "remialer chain wind",
    "chain mixing remailer wind",
    "remailer wind snow",
    "mixing chian",
    "zebra quokka remailer",
    '"remailer chain" wind rain',
    "remailer -rain wind chain",
)


def entry(key: str, title: str, body: str, month: int = 1) -> dict[str, Any]:
    return {"id": key, "title": title, "body": body, "created_at": f"2026-{month:02}-01T00:00:00Z"}


def ask(door: Door, query: str, *grants: Any) -> Reply:
    return door.get(f"/v1/search?{query}", client(*grants))


def test_a_question_without_blanks_is_asked_for_its_words(door: Door) -> None:
    rows = [entry("j1", "Plan", "明日の会議の資料"), entry("j2", "Party", "Sommerfest")]
    write(door.store, DIARY, "entries", rows)
    asked = (("会議はいつですか", "j1", "会議"), ("Sommerfestはいつ", "j2", "Sommerfest"))
    for query, key, word in asked:
        reply = ask(door, f"q={quote(query)}")
        assert reply.keys == [key]
        assert reply.body["meta"]["relaxed"] == {"words": 1, "exact_count": 0}
        assert reply.data[0]["matched_words"] == [word]
        assert ask(door, f"q={quote(query)}&exact=true").keys == []
    absent = ask(door, f"q={quote('鯨はいつですか')}").body["meta"]
    assert absent["relaxed"]["absent"] == ["鯨"]


def test_a_mistyped_word_is_taken_for_the_near_one_that_occurs(door: Door) -> None:
    write(door.store, DIARY, "entries", [entry(f"r{n}", "Remailer", "a chain") for n in range(3)])
    reply = ask(door, "q=remialer%20chain")
    assert sorted(reply.keys) == ["r0", "r1", "r2"]
    meta = reply.body["meta"]
    assert meta["relaxed"] == {"words": 2, "exact_count": 0, "spelled": ["remialer"]}
    near = {"word": "remialer", "value": "remailer", "count": 3, "searched": True}
    assert meta["near"] == [near]
    assert reply.data[0]["matched_words"] == ["remialer", "chain"]
    marked = reply.data[0]["snippet"]["text"]
    assert "<mark>" in marked


def test_a_word_that_stands_there_in_another_form_is_near_where_none_is_as_written(
    door: Door,
) -> None:
    write(door.store, DIARY, "entries", [entry("r1", "", "anonymous remailers")])
    for slip in ("remialer", "rremailer", "remaler", "remaier"):
        reply = ask(door, f"q={slip}")
        is_slip = slip != "remaier"  # a consonant that is not there could be any
        assert reply.keys == (["r1"] if is_slip else [])
        near = {"word": slip, "value": "remailer", "count": 1, "searched": True}
        assert reply.body["meta"].get("near") == ([near] if is_slip else None)


def test_a_slip_of_a_word_in_another_form_is_likelier_than_a_letter_too_many(door: Door) -> None:
    written = [entry("other", "", "garding"), *(entry(f"g{n}", "", "garden") for n in range(3))]
    write(door.store, DIARY, "entries", written)
    reply = ask(door, "q=gardning")
    assert sorted(reply.keys) == ["g0", "g1", "g2"]
    assert [each["value"] for each in reply.body["meta"]["near"]] == ["gardening"]


def test_exact_forbids_all_of_it(door: Door) -> None:
    write(door.store, DIARY, "entries", [entry("r1", "Remailer", "a chain")])
    reply = ask(door, "q=remialer%20chain&exact=true")
    assert reply.data == []
    assert not {"relaxed", "near"} & reply.body["meta"].keys()


def test_some_words_follow_those_that_hold_all(door: Door) -> None:
    texts = {"all": "chain of zinc mixers", "two": "zinc mixers", "one": "zinc and zinc"}
    write(door.store, DIARY, "entries", [entry(key, "", text) for key, text in texts.items()])
    reply = ask(door, "q=chain%20zinc%20mixers")
    assert reply.keys == ["all", "two", "one"]
    assert reply.body["meta"]["relaxed"] == {"words": 3, "exact_count": 1, "least": 1}
    held = [None, ["zinc", "mixers"], ["zinc"]]
    assert [hit.get("matched_words") for hit in reply.data] == held
    further = ask(door, "q=chain%20zinc%20mixers&limit=1")
    cursor = further.body["next_cursor"]
    second = ask(door, f"q=chain%20zinc%20mixers&limit=1&cursor={cursor}")
    assert second.data == reply.data[1:2]
    assert second.body["meta"]["relaxed"] == reply.body["meta"]["relaxed"]
    door.ports.rankings.forget()
    again = ask(door, f"q=chain%20zinc%20mixers&limit=1&cursor={cursor}")
    assert again.data == second.data


def test_near_words_are_logged_of_every_account_that_was_searched_for_them(door: Door) -> None:
    write(door.store, DIARY, "entries", [entry("r1", "Remailer", "a chain")])
    reply = ask(door, "q=remialer%20chain")
    told = [(each.source.connection_id, each.record_count) for each in reply.disclosed]
    # the hit, that nothing held what was written, and where it was looked for in vain
    assert sorted(told) == [(DIARY, 0), (DIARY, 1), (LETTERS, 0)]
    (elsewhere,) = [e for e in reply.disclosed if e.source.connection_id == LETTERS]
    assert elsewhere.fields == ("title", "body")
    plain = ask(door, "q=remailer%20chain")
    assert [(e.source.connection_id, e.record_count) for e in plain.disclosed] == [(DIARY, 1)]


def test_a_search_that_was_relaxed_leaves_in_longer_steps(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "LONGER_STEP_SECONDS", 1_000.0)
    lately = client(stream_grant(since="2020-01-01T00:00:00Z"))

    def seconds_left(text: str) -> float:
        with door.store.snapshot() as snapshot:
            found = search(door.ports, snapshot, lately, SearchQuery(text))
        assert found.leaves_at is not None
        return found.leaves_at - perf_counter()

    assert seconds_left("rain") < 500 < seconds_left("quokka llama zebra")


@pytest.mark.parametrize(("held", "kind"), [(98, "exact"), (99, "estimated")])
def test_where_only_the_best_of_many_are_hits_their_number_is_no_count(
    door: Door, held: int, kind: str
) -> None:
    written = [entry(f"z{n}", "", f"zinc {n}") for n in range(held)]
    write(door.store, DIARY, "entries", [*written, entry("q", "", "quokka")])
    first = ask(door, "q=zinc%20quokka%20llama&limit=10").body
    second = ask(door, f"q=zinc%20quokka%20llama&limit=10&cursor={first['next_cursor']}").body
    for meta in (first["meta"], second["meta"]):
        assert meta["count"] == {"kind": kind, "value": min(held + 1, 100)}
        assert meta["count_accuracy"] == ("exact" if kind == "exact" else "lower_bound")


def test_what_is_not_there_is_said(door: Door) -> None:
    reply = ask(door, "q=quokka%20llama%20zebra")
    assert reply.data == []
    assert reply.body["meta"]["empty"] == {"reason": "nothing_matches"}
    told = {"words": 3, "exact_count": 0, "least": 1, "absent": ["quokka", "llama", "zebra"]}
    assert reply.body["meta"]["relaxed"] in (told, {k: v for k, v in told.items() if k != "least"})


@pytest.mark.parametrize(
    "shown",
    [
        stream_grant(fields=NARROW),
        stream_grant(resources=("e1", "l1")),
        stream_grant(until="2026-06-01T00:00:00Z"),
    ],
    ids=["fields", "records", "time"],
)
def test_what_is_hidden_changes_no_byte(tmp_path: Path, shown: Any) -> None:
    answers: list[list[bytes]] = []
    for name, body in (("one", "a remailer chain, mixing"), ("other", "a lopkjhgf nhytr, vbcfd")):
        folder = tmp_path / name
        folder.mkdir()
        with open_store("sqlite", folder) as store:
            door = Door(furnished(store))
            hidden = [entry(f"h{n}", "Rain", body, 12) for n in range(9)]
            if "body" not in shown.fields:
                hidden = [{**each, "created_at": "2026-01-01T00:00:00Z"} for each in hidden]
            write(store, DIARY, "entries", hidden)
            answers.append([ask(door, f"q={text}", shown).text for text in ASKED])
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("remialer", "remailer"),
        ("remailr", "remailer"),
        ("remaailer", "remailer"),
        ("remauler", "remailer"),
        ("zloty", "złoty"),
        ("привт", "привет"),
        ("ελλαδ", "ελλαδα"),
    ],
)
def test_a_letter_added_lost_changed_or_swapped_is_near(word: str, near: str) -> None:
    assert near in near_spellings(word)
    assert likeliest(word, {near: 7}).words == (near,)


@pytest.mark.parametrize("word", ["rai", "2019", "a1b2c3", "ab" * 13, "日本語日", "mixаb"])
def test_short_words_numbers_and_mixed_scripts_have_no_near_ones(word: str) -> None:
    assert near_spellings(word) == ()


def test_the_likeliest_is_taken_where_it_is_clearly_that() -> None:
    assert likeliest("meetng", {"meeting": 500}).is_clear
    assert not likeliest("stoxe", {"store": 40, "stove": 50}).is_clear
    assert likeliest("tihsone", {"thisone": 9, "tinsone": 9}).words[0] == "thisone"
    assert not likeliest("rian", {"rain": 9}).is_clear
    assert likeliest("absent", {"absent's": 0}).words == ()


def test_nothing_is_compared_where_many_hold_all_words_in_another_spelling() -> None:
    """What is near in meaning would stand below them."""
    door = Door(furnished(), embedder=TinyEmbedder())
    index = PassageIndex(door.store, KnownDeclarations(), TinyEmbedder, sleep=lambda _: None)
    for count in (200, 201):
        written = [entry(f"r{n}", "Letter", "weather wet") for n in range(count)]
        write(door.store, DIARY, "entries", [*written, entry("near", "Letter", "rain")])
        index()
        body = ask(door, "q=weathre%20wet&mode=hybrid").body
        is_compared = count == 200
        assert (body["meta"]["count"]["value"] > count) == is_compared


@dataclass
class Counted:
    """A snapshot that knows how many records hold each word, and nothing else."""

    counts: dict[str, int]

    def count_terms(self, plan: SearchPlan) -> tuple[int, ...]:
        return tuple(self.counts[term.tokens[0]] for term in plan.words.terms)


def telling_words(exact_count: int = 0, **counts: int) -> list[str]:
    """The words of the last question of which one is enough."""
    plan = SearchPlan((), parse_words(" ".join(counts)))
    asked = relaxation(cast("ReadSnapshot", Counted(counts)), plan, exact_count).questions
    return [asked[-1].terms[place].tokens[0] for place in asked[-1].telling] if asked else []


@pytest.mark.parametrize(
    ("counts", "telling"),
    [
        ({"rain": 1, "wind": 2, "snow": 3}, ["rain", "wind", "snow"]),
        ({"rain": 1, "wind": 1_000, "snow": 999}, ["rain", "wind", "snow"]),
        ({"rain": 1, "wind": 1_001, "snow": 2}, ["rain", "snow"]),
        ({"rain": 500, "wind": 700, "snow": 800}, ["rain", "wind", "snow"]),
        ({"rain": 500, "wind": 700, "snow": 801}, ["rain", "wind"]),
        ({"rain": 5, "wind": 7, "und": 6}, ["rain", "wind"]),
    ],
)
def test_one_of_the_rarest_words_is_enough_as_long_as_few_hold_them(
    counts: dict[str, int], telling: list[str]
) -> None:
    assert telling_words(**counts) == telling


def test_where_some_hold_two_words_none_is_left_out_and_of_three_one_may_be() -> None:
    assert telling_words(1, rain=1, wind=2) == []
    assert telling_words(1, rain=1, wind=2, snow=3) == ["rain", "wind", "snow"]


def test_all_sources_share_a_fifth_of_the_time_of_a_read() -> None:
    scopes = tuple(cast("Scope", None) for _ in range(4))
    words = parse_words("rain")
    assert step_seconds(SearchPlan((), words)) == pytest.approx(READ_DEADLINE_SECONDS / 5)
    assert step_seconds(SearchPlan(scopes, words)) == pytest.approx(READ_DEADLINE_SECONDS / 20)


def test_what_names_fields_or_stands_in_quotation_marks_is_strict() -> None:
    rain = Term(("rain",), said="Rain!")
    named, quoted = replace(rain, named=NamedPiece("from", "rain")), replace(rain, quoted=True)
    either = replace(rain, others=(named,))
    each = (rain, named, quoted, either)
    assert [is_named(term) for term in each] == [False, True, False, True]
    assert [is_strict(term) for term in each] == [False, True, True, True]
    assert (written(rain), written(Term(("heavy", "rain")))) == ("Rain!", "heavy rain")


@dataclass
class Asked:
    """A snapshot that knows how often words occur, and counts so many times only."""

    counts: dict[str, int]
    times: int = 99

    def count_terms(self, plan: SearchPlan) -> tuple[int, ...] | None:
        self.times -= 1
        if self.times < 0:
            return None
        return tuple(self.counts.get(term.tokens[0], 0) for term in plan.words.terms)


def relaxed(asked: Asked, text: str, exact_count: int = 0) -> Relaxation:
    plan = SearchPlan((), parse_words(text))
    return relaxation(cast("ReadSnapshot", asked), plan, exact_count)


SLIPS = {
    "remialer": "remailer",
    "gardining": "gardening",
    "calender": "calendar",
    "seperate": "separate",
    "recieved": "received",
}


def test_near_words_are_looked_up_for_four_that_nothing_holds() -> None:
    found = relaxed(Asked(dict.fromkeys(SLIPS.values(), 50)), " ".join(SLIPS))
    assert {each.word: each.value for each in found.near} == dict(list(SLIPS.items())[:4])
    assert found.spelled == tuple(SLIPS)[:4]
    assert found.absent == ("recieved",)


@pytest.mark.parametrize(
    ("times", "absent", "spelled"),
    [(0, (), ()), (1, ("remialer",), ()), (2, (), ("remialer",)), (3, (), ("remialer",))],
)
def test_what_could_not_be_counted_in_time_is_left_as_it_is(
    times: int, absent: tuple[str, ...], spelled: tuple[str, ...]
) -> None:
    found = relaxed(Asked({"remailer": 50, "rain": 9}, times), "remialer rain")
    assert (found.absent, found.spelled) == (absent, spelled)
    assert bool(found.questions) is (times > 0)


LETTERS_OF = "abcdefghijklmn"


@pytest.mark.parametrize("count", [2, 12, 13, 14])
def test_twelve_words_are_looked_for_together_the_rarest_of_more(count: int) -> None:
    words = {f"word{letter}": 14 - n for n, letter in enumerate(LETTERS_OF[:count])}
    (question,) = relaxed(Asked(words), " ".join(words)).questions
    rarest = sorted(words, key=words.__getitem__)[:12]
    assert {term.tokens[0] for term in question.terms} == {*rarest}
    assert question.least == 1


@pytest.mark.parametrize(("count", "is_asked"), [(12, True), (13, False)])
def test_no_more_than_twelve_words_are_meant_strictly(count: int, *, is_asked: bool) -> None:
    strict = [f'"word{letter}"' for letter in LETTERS_OF[:count]]
    counts = {each.strip('"'): 5 for each in strict} | {"rain": 3, "wind": 4}
    found = relaxed(Asked(counts), " ".join([*strict, "rain", "wind"]))
    assert len(found.questions) == is_asked
    if is_asked:
        assert found.questions[0].least == 13
        held = [term for term in found.questions[0].terms if term.quoted]
        assert len(held) == 12


@pytest.mark.parametrize("whole", [0, 1, 2, 3, 4])
def test_three_hits_that_hold_all_words_are_enough(door: Door, whole: int) -> None:
    texts = [f"zinc copper nickel {n}" for n in range(whole)] + ["zinc and copper"]
    write(door.store, DIARY, "entries", [entry(f"n{n}", "", text) for n, text in enumerate(texts)])
    reply = ask(door, "q=zinc%20copper%20nickel")
    is_few = whole < 3
    assert sorted(reply.keys) == [f"n{n}" for n in range(whole + is_few)]
    told = reply.body["meta"].get("relaxed")
    assert told == ({"words": 3, "exact_count": whole, "least": 1} if is_few and whole else told)
    assert (told is None) is not is_few
    assert ask(door, "q=zinc%20copper%20nickel&exact=true").keys == reply.keys[:whole]


def test_where_nothing_more_is_found_nothing_is_said_of_it(door: Door) -> None:
    write(door.store, DIARY, "entries", [entry("only", "", "zinc copper nickel")])
    reply = ask(door, "q=zinc%20copper%20nickel")
    assert (reply.keys, "relaxed" in reply.body["meta"]) == (["only"], False)
    assert reply.body["meta"]["count"] == {"kind": "exact", "value": 1}


@pytest.mark.parametrize("spelled", [2, 3])
def test_no_further_question_is_asked_once_three_are_found(door: Door, spelled: int) -> None:
    texts = ["a remailer chain"] * spelled + ["chain"]
    write(door.store, DIARY, "entries", [entry(f"r{n}", "", text) for n, text in enumerate(texts)])
    reply = ask(door, "q=remialer%20chain")
    assert len(reply.keys) == (3 if spelled == 2 else spelled)
    assert ("least" in reply.body["meta"]["relaxed"]) is (spelled == 2)
