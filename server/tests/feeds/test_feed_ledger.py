"""The ledger against a folder that changes at random, by a clock of the test."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pdpp_kernel.values import NANOSECONDS
from personal_server.feeds.feed_ledger import (
    LONG_PAST_NS,
    SETTLED_AFTER_NS,
    Decision,
    ItemState,
    LookTerms,
    decide,
    differences,
    line_after,
)
from personal_server.feeds.watched_folders import FolderLayout, SeenItem
from personal_server.storage.feed_rows import FeedItemRow

BEGINS = 1_795_000_000 * NANOSECONDS
NAMES = ["a.zip", "b.csv", "c.mbox"]


@dataclass
class Folder:
    """Files with a content each, and the ledger that looks at them."""

    layout: FolderLayout = FolderLayout.EXPORTS
    now: int = BEGINS
    skew: int = 0
    files: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    ledger: dict[str, FeedItemRow] = field(default_factory=dict[str, FeedItemRow])
    imported: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    contents: int = 0

    def write(self, name: str) -> None:
        self.contents += 1
        self.files[name] = (self.contents, self.now)

    def rename(self, name: str, to: str) -> None:
        if name in self.files and name != to:
            self.files[to] = self.files.pop(name)

    def seen(self) -> list[SeenItem]:
        return [
            SeenItem(name, f"m{content}", at + self.skew, 10, is_unfinished=False)
            for name, (content, at) in sorted(self.files.items())
        ]

    def look(self, **over: object) -> Decision:
        terms = replace(LookTerms("fee_1", self.layout, self.now, "1"), **over)
        decision = decide(self.seen(), self.ledger, terms)
        for line in decision.lines:
            self.ledger[line.item] = line
        for name in decision.forgotten:
            self.ledger.pop(name, None)
        for item in decision.taken:
            self.imported.append((item.name, self.files[item.name][0]))
            self.ledger[item.name] = line_after(item, None, terms)
        return decision


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "rename", "delete", "look", "wait"]),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.integers(0, 90),
    ),
    max_size=50,
)


@settings(max_examples=400)
@given(STEPS, st.integers(-3_600, 3_600), st.sampled_from(FolderLayout))
def test_a_folder_that_rests_is_imported_whole_and_nothing_half(
    steps: list[tuple[str, str, str, int]], skew: int, layout: FolderLayout
) -> None:
    """Also where the clock of the place is an hour off."""
    folder = Folder(layout, skew=skew * NANOSECONDS)
    for step, name, other, seconds in steps:
        folder.now += seconds * NANOSECONDS
        match step:
            case "write":
                folder.write(name)
            case "rename":
                folder.rename(name, other)
            case "delete":
                folder.files.pop(name, None)
            case "look":
                folder.look()
            case _:
                pass
    for _ in range(3):
        folder.now += SETTLED_AFTER_NS
        folder.look()
    wanted = {name: f"m{content}" for name, (content, _) in folder.files.items()}
    stored = {n: each.mark for n, each in folder.ledger.items() if each.state == ItemState.STORED}
    assert stored == wanted
    assert {content for content, _ in folder.files.values()} <= {c for _, c in folder.imported}
    assert {each.reason for each in differences(folder.seen(), folder.ledger)} <= {"gone"}
    # what rests costs nothing, however often it is looked at
    before = len(folder.imported)
    folder.now += 3_600 * NANOSECONDS
    quiet = folder.look()
    assert (len(folder.imported), quiet.lines, quiet.gone) == (before, [], 0)


@settings(max_examples=200)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=20))
def test_a_file_that_grows_is_not_taken(pauses: list[int]) -> None:
    folder = Folder()
    for seconds in pauses:
        folder.write("a.zip")
        assert folder.look().taken == []
        folder.now += seconds * NANOSECONDS
        assert folder.look().taken == []
    folder.now += SETTLED_AFTER_NS
    assert [each.name for each in folder.look().taken] == ["a.zip"]


def test_a_tree_that_never_rests_is_read_after_a_minute() -> None:
    folder = Folder(FolderLayout.TREE)
    taken = 0
    for _ in range(130):
        folder.write("a.zip")
        taken += len(folder.look().taken)
        folder.now += NANOSECONDS
    assert taken == 2


def test_an_item_is_renamed_without_an_import() -> None:
    folder = Folder(now=BEGINS)
    folder.write("a.zip")
    folder.now += LONG_PAST_NS
    folder.look()
    folder.rename("a.zip", "b.csv")
    decision = folder.look()
    assert (decision.taken, decision.gone) == ([], 0)
    assert set(folder.ledger) == {"b.csv"}


def test_what_is_gone_is_said_once_and_comes_back_without_an_import() -> None:
    folder = Folder()
    folder.write("a.zip")
    folder.now += LONG_PAST_NS
    folder.look()
    kept = folder.files.pop("a.zip")
    assert folder.look().gone == 1
    assert folder.look().gone == 0
    assert folder.ledger["a.zip"].state == ItemState.GONE
    folder.files["a.zip"] = kept
    assert folder.look().taken == []
    assert folder.ledger["a.zip"].state == ItemState.STORED


def test_a_rejected_item_is_tried_again_by_a_newer_reader_or_on_demand() -> None:
    folder = Folder()
    folder.write("a.zip")
    folder.now += LONG_PAST_NS
    (item,) = folder.seen()
    terms = LookTerms("fee_1", FolderLayout.EXPORTS, folder.now, "1")
    folder.ledger["a.zip"] = line_after(item, "export_not_recognized", terms)
    assert folder.look().taken == []
    assert len(folder.look(reader="2").taken) == 1
    folder.ledger["a.zip"] = line_after(item, "export_not_recognized", terms)
    assert len(folder.look(retries=True).taken) == 1


def test_an_unfinished_item_waits_however_old_it_is() -> None:
    item = SeenItem("a.zip.part", "m1", 0, 10, is_unfinished=True)
    decision = decide([item], {}, LookTerms("fee_1", FolderLayout.EXPORTS, BEGINS, "1"))
    assert (decision.taken, decision.settling) == ([], 1)


@pytest.mark.parametrize("hours", [1, 14])
def test_a_file_that_grows_on_a_drive_whose_clock_is_behind_is_not_taken(hours: int) -> None:
    folder = Folder(skew=-hours * 3_600 * NANOSECONDS)
    for _ in range(20):
        folder.write("a.zip")
        assert folder.look().taken == []
        folder.now += 3 * NANOSECONDS
        assert folder.look().taken == []
    folder.now += SETTLED_AFTER_NS
    assert [each.name for each in folder.look().taken] == ["a.zip"]


@pytest.mark.parametrize("layout", FolderLayout)
def test_a_clock_that_is_put_back_delays_nothing(layout: FolderLayout) -> None:
    folder = Folder(layout)
    folder.write("a.zip")
    folder.look()
    folder.now -= 3_600 * NANOSECONDS
    folder.look()
    folder.now += SETTLED_AFTER_NS
    folder.look()
    assert [name for name, _ in folder.imported] == ["a.zip"]
