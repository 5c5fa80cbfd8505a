"""JMAP accounts against a double written from the standard, and against one that misbehaves."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pdpp_sources.mailbox_messages import MOST_FOLDERS
from personal_server.app import jmap_sync
from personal_server.app.feeding import feed_store
from personal_server.app.jmap_mailboxes import KnownJmap
from personal_server.feeds.feed_states import FeedState
from personal_server.feeds.fetched_batches import FetchedBatches
from personal_server.settings import Settings
from personal_server.storage.feed_rows import FOLLOW
from server.tests.app.jmap_double import Args, Bends, JmapDouble, jmap_double
from server.tests.app.test_feeding import a_mail
from server.tests.app.test_jmap_runs import (
    FeedOf,
    again,
    by_itself,
    compared,
    feed_of,
    held,
    killed_after,
    settings,
)

__all__ = ["feed_of", "settings"]
SECOND_NS = 1_000_000_000
_LABELS = {"$flagged": "Starred", "$answered": "Answered", "$forwarded": "Forwarded"}


@pytest.fixture
def double() -> Iterator[JmapDouble]:
    with jmap_double() as found:
        yield found


def there(double: JmapDouble) -> Counter[tuple[str, str, tuple[str, ...]]]:
    """The mails of the account that are to be here, counted by what the double alone knows."""
    found: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
    for mail in double.mails.values():
        names: list[str] = []
        for mailbox in mail.mailboxes:
            path, at = "", mailbox
            while at:
                name, above, role = double.mailboxes[at]
                path, at = f"{'INBOX' if role == 'inbox' else name}.{path}".rstrip("."), above
            if double.mailboxes[mailbox][2] != "junk":
                names.append(path)
        if not names:
            continue
        first = min(names, key=lambda name: (name != "INBOX", name))
        subject = next(e for e in mail.raw.splitlines() if e.startswith(b"Subject: "))
        labels = [_LABELS.get(each, each) for each in mail.keywords - {"$seen"}]
        labels += [] if "$seen" in mail.keywords else ["Unread"]
        found[subject[9:].decode(), first, tuple(sorted(labels))] += 1
    return found


def edited(double: JmapDouble, chance: random.Random, number: int) -> None:
    """One edit of the account, as its owner or their mail programs make them."""
    usual = [each for each, (_, _, role) in double.mailboxes.items() if role != "inbox"]
    kind = chance.choice(("new", "new", "new", "mark", "mark", "move", "copy", "delete", "folder"))
    if kind == "new" or not double.mails:
        name = double.mailboxes[chance.choice(list(double.mailboxes))][0]
        double.put(a_mail(number), name, *chance.sample(["$seen", "$flagged", "invoices"], 2))
        return
    email = chance.choice(list(double.mails))
    if kind == "mark":
        words = ["$seen", "$flagged", "$answered", "$forwarded", "later"]
        double.mark(email, set(chance.sample(words, chance.randrange(4))))
    elif kind == "move":
        double.move(email, {chance.choice(list(double.mailboxes))})
    elif kind == "copy":
        double.move(email, double.mails[email].mailboxes | {chance.choice(list(double.mailboxes))})
    elif kind == "delete":
        double.delete(email)
    elif number % 3 == 0:
        double.add_mailbox(f"Folder {number}", chance.choice([None, double.named("Archive")]))
    elif number % 3 == 1:
        double.rename(double.named("Archive"), "Store")
        double.rename(double.named("Store"), "Archive")
        others = [e for e in usual if double.mailboxes[e][2] is None]
        if others:
            double.rename(chance.choice(others), f"Renamed {number}")
    else:
        inner = {parent for _, parent, _ in double.mailboxes.values()}
        others = [e for e in usual if double.mailboxes[e][2] is None and e not in inner]
        if others:
            double.drop(chance.choice(others))


@pytest.mark.parametrize(
    ("edits", "seed"), [(60, 1), pytest.param(1_000, 2, marks=pytest.mark.long)]
)
def test_after_random_edits_and_cuts_the_records_are_those_of_the_account(
    double: JmapDouble,
    feed_of: FeedOf,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    *,
    edits: int,
    seed: int,
) -> None:
    chance = random.Random(seed)
    double.most_objects, double.most_calls = 7, 1
    fed, ends = feed_of(double.place, deletions=FOLLOW), Counter[str | None]()
    for number in range(edits):
        edited(double, chance, number)
        if number % 10 == 9:
            double.forgets = chance.random() < 0.1
            double.bends = Bends(cut_at=double.requests + chance.randrange(1, 24))
            with monkeypatch.context() as patch:
                if chance.random() < 0.3:
                    patch.setattr(FetchedBatches, "take", killed_after)
                again(fed)
                result = fed.engine.run(fed.feed_id)
            ends["killed" if result is None else result.code] += 1
            edited(double, chance, edits + number)
            double.bends = Bends()
    print(f"{edits} edits, runs ended {dict(ends)}, {fed.held()}")
    again(fed)
    fed.run()  # its owner wants what went deleted, though it is more than half
    assert [by_itself(fed).code for _ in range(3)] == [None] * 3
    assert held(fed) == there(double)
    assert compared(fed, settings).differences == []


def test_a_poll_in_which_nothing_is_new_is_one_request(double: JmapDouble, feed_of: FeedOf) -> None:
    for number in range(20):
        double.put(a_mail(number))
    fed = feed_of(double.place)
    assert by_itself(fed).records_new == 20
    assert sorted(double.downloaded) == sorted(double.mails)
    idle = by_itself(fed)
    assert (idle.code, idle.commands, idle.new, idle.records_updated) == (None, 1, 0, 0)
    assert idle.size_bytes < 2_000
    double.put(a_mail(30))
    assert by_itself(fed).records_new == 1
    assert len(double.downloaded) == 21


def test_each_mail_is_downloaded_once_over_connections_that_are_cut(
    double: JmapDouble, feed_of: FeedOf
) -> None:
    double.most_objects = 5
    for number in range(30):
        double.put(a_mail(number))
    fed = feed_of(double.place)
    for cut_at in (9, 30, 45):
        double.bends = Bends(cut_at=cut_at)
        assert by_itself(fed).code == "mailbox_unreachable"
    double.bends = Bends()
    assert by_itself(fed).code is None
    assert fed.held() == {"messages": 30}
    assert len(double.downloaded) <= 33  # each that was cut comes again


def test_a_password_is_tried_once(double: JmapDouble, feed_of: FeedOf) -> None:
    fed = feed_of(double.place, password="wrong")
    result = by_itself(fed)
    assert (result.code, result.commands) == ("sign_in_refused", 1)
    assert fed.feed.state == FeedState.NEEDS_YOU


def test_a_token_is_a_bearer(double: JmapDouble, feed_of: FeedOf) -> None:
    double.scheme = "Bearer fmu1-token"
    double.put(a_mail(1))
    place = double.place.replace("jmap:", "jmap+token:")
    fed = feed_of(place, password="fmu1-token")
    assert by_itself(fed).records_new == 1


def test_a_server_that_asks_to_be_left_alone_is_left_so_long(
    double: JmapDouble, feed_of: FeedOf
) -> None:
    double.put(a_mail(1))
    fed = feed_of(double.place)
    by_itself(fed)
    double.bends = Bends(status=429, headers={"Retry-After": "7200"})
    begun_ns = fed.stores.clock()
    assert by_itself(fed).code == "mailbox_unreachable"
    assert fed.feed.state == FeedState.RESTING
    assert fed.feed.due_at_ns - begun_ns >= 7_200 * SECOND_NS


@pytest.mark.parametrize("member", ["apiUrl", "downloadUrl"])
@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9/{blobId}", "http://10.0.0.1/{blobId}", "https://example.org/{blobId}"],
)
def test_no_address_of_a_session_takes_the_password_elsewhere(
    double: JmapDouble, feed_of: FeedOf, member: str, url: str
) -> None:
    double.put(a_mail(1))
    double.bends = Bends(session={member: url})
    fed = feed_of(double.place)
    assert by_itself(fed).code == "redirect_refused"
    assert fed.feed.state == FeedState.NEEDS_YOU
    assert fed.held() == {}


def _without_end(_: str, asked: Args, found: Args) -> Args:
    if "newState" in found:
        return {**found, "newState": f"s{len(str(asked)) % 7}", "hasMoreChanges": True}
    return found


def _again_and_again(name: str, asked: Args, found: Args) -> Args:
    return {**found, "ids": ["M4", "M5"], "limit": 2} if name == "Email/query" else found


def _otherwise(**members: Any) -> Callable[[str, Args, Args], Args]:
    return lambda _, __, found: {**found, **{n: v for n, v in members.items() if n in found}}


@pytest.mark.parametrize(
    "bends",
    [
        Bends(body=b"<html>"),
        Bends(body=b"[" * 100_000),
        Bends(body=b'{"methodResponses": []}'),
        Bends(body=b" " * 17_000_000),
        Bends(status=500, fails_from=2),
        Bends(session={"apiUrl": 7}),
        Bends(session={"apiUrl": f"/{'a' * 5_000}"}),
        Bends(answer=_otherwise(state=5)),
        Bends(answer=_otherwise(list={"id": "M1"})),
        Bends(answer=_otherwise(list=[])),
        Bends(answer=_otherwise(ids=["../../etc"])),
        Bends(answer=_otherwise(ids=[f"M{n}" for n in range(30_000)])),
        Bends(answer=_again_and_again),
        Bends(answer=_without_end),
    ],
)
def test_a_hostile_server_ends_its_own_run_only(
    double: JmapDouble, feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch, bends: Bends
) -> None:
    monkeypatch.setattr(jmap_sync, "MOST_PAGES", 20)
    double.put(a_mail(1))
    fed = feed_of(double.place)
    double.bends = bends
    results = [by_itself(fed) for _ in range(2)]
    assert "mailbox_misbehaves" in {each.code for each in results}
    assert max(each.commands for each in results) < 100
    double.bends = Bends()
    assert by_itself(fed).code is None
    assert fed.held() == {"messages": 1}


@pytest.mark.parametrize("said", [5, 100_000_000, 10_000])
def test_a_mail_of_another_size_than_was_said_costs_itself_only(
    double: JmapDouble, feed_of: FeedOf, said: int
) -> None:
    double.put(a_mail(1))
    liar = double.put(a_mail(2))

    def sized(name: str, _: Args, found: Args) -> Args:
        if name != "Email/get":
            return found
        lied = [each | {"size": said} if each["id"] == liar else each for each in found["list"]]
        return {**found, "list": lied}

    if said == 5:
        double.mails[liar].raw += b"x" * 33 * 1024 * 1024
    double.bends = Bends(answer=sized)
    fed = feed_of(double.place)
    result = by_itself(fed)
    assert (result.code, result.rejected, result.records_new) == (None, 1, 1)
    assert by_itself(fed).commands == 1
    double.bends = Bends()
    double.mails[liar].raw = double.mails[liar].raw[:2_000]
    assert fed.run().code is None  # the owner asks: what was refused is tried again
    assert fed.held() == {"messages": 2}


def test_a_server_that_passes_over_a_change_is_compared(
    double: JmapDouble, feed_of: FeedOf, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jmap_sync, "COMPARED_EVERY_NS", 0)
    for number in range(5):
        double.put(a_mail(number))
    fed = feed_of(double.place, deletions=FOLLOW)
    by_itself(fed)
    lost = next(iter(double.mails))
    del double.mails[lost]  # and no state tells it
    double.put(a_mail(9))
    for _ in range(3):
        by_itself(fed)
    assert held(fed) == there(double)
    assert compared(fed, settings).differences == []


def test_a_state_that_goes_back_has_all_compared(
    double: JmapDouble, feed_of: FeedOf, settings: Settings
) -> None:
    for number in range(5):
        double.put(a_mail(number))
    fed = feed_of(double.place, deletions=FOLLOW)
    by_itself(fed)
    double.delete(next(iter(double.mails)))
    del double.edits[4:]  # as after a restore
    for _ in range(3):
        assert by_itself(fed).code is None
    assert held(fed) == there(double)


def test_a_server_that_never_tells_what_changed_is_compared_when_something_did(
    double: JmapDouble, feed_of: FeedOf
) -> None:
    double.never_tells = True
    for number in range(5):
        double.put(a_mail(number))
    fed = feed_of(double.place, deletions=FOLLOW)
    assert by_itself(fed).records_new == 5
    assert by_itself(fed).commands <= 5
    double.delete(next(iter(double.mails)))
    double.put(a_mail(9))
    for _ in range(3):
        assert by_itself(fed).code is None
    assert held(fed) == there(double)
    assert len(double.downloaded) == 6


def test_a_session_that_is_another_is_found_anew(double: JmapDouble, feed_of: FeedOf) -> None:
    double.put(a_mail(1))
    fed = feed_of(double.place)
    by_itself(fed)
    double.session_state = "2"
    assert by_itself(fed).commands == 3  # the poll, and the session behind its redirect
    assert by_itself(fed).commands == 1


def test_a_mailbox_that_goes_while_others_are_read_ends_no_run(
    double: JmapDouble, feed_of: FeedOf
) -> None:
    double.put(a_mail(1))
    going = double.add_mailbox("Zeta")
    double.put(a_mail(2), "Zeta")

    def dropped(name: str, _: Args, found: Args) -> Args:
        if name == "Email/query" and going in double.mailboxes:
            double.drop(going)
            double.add_mailbox("New")
            double.put(a_mail(3), "New")
        return found

    double.bends = Bends(answer=dropped)
    fed = feed_of(double.place, deletions=FOLLOW)
    assert [by_itself(fed).code for _ in range(3)] == [None] * 3
    assert held(fed) == there(double)


def test_mailboxes_beyond_those_that_are_listed_lose_no_mail(
    double: JmapDouble, feed_of: FeedOf
) -> None:
    last = double.add_mailbox("Late")
    double.put(a_mail(1), "Late")
    fed = feed_of(double.place, deletions=FOLLOW)
    assert by_itself(fed).records_new == 1
    late = double.mailboxes.pop(last)
    double.mailboxes |= {f"j{n}": (f"J{n}", None, "junk") for n in range(MOST_FOLDERS)}
    double.mailboxes[last] = late
    double.rename("mb3", "Store")
    assert [by_itself(fed).code for _ in range(3)] == [None] * 3
    assert fed.held() == {"messages": 1}


def test_a_list_that_is_shorter_than_the_server_counts_loses_no_mail(
    double: JmapDouble, feed_of: FeedOf
) -> None:
    for number in range(4):
        double.put(a_mail(number))
    fed = feed_of(double.place, deletions=FOLLOW)
    by_itself(fed)
    double.forgets = True
    double.mark(next(iter(double.mails)), {"$seen"})
    double.bends = Bends(
        answer=lambda name, _, found: {**found, "ids": []} if name == "Email/query" else found
    )
    assert [by_itself(fed).code for _ in range(3)] == [None] * 3
    assert fed.held() == {"messages": 4}


def test_a_server_that_lists_less_than_was_asked_for_and_does_not_say_so_is_listed_whole(
    double: JmapDouble, feed_of: FeedOf
) -> None:
    for number in range(4):
        double.put(a_mail(number))
    double.bends = Bends(
        answer=lambda _, __, found: {**found, "ids": found["ids"][:2]} if "ids" in found else found
    )
    fed = feed_of(double.place)
    assert by_itself(fed).records_new == 4


def test_a_server_whose_state_is_always_another_and_tells_no_changes_is_fetched(
    double: JmapDouble, feed_of: FeedOf
) -> None:
    for number in range(4):
        double.put(a_mail(number))
    double.never_tells, states = True, iter(range(1_000))
    double.bends = Bends(
        answer=lambda _, __, found: (
            {**found, "state": f"x{next(states)}"} if "state" in found else found
        )
    )
    fed = feed_of(double.place)
    by_itself(fed)
    assert fed.held() == {"messages": 4}


def test_a_server_that_fails_once_does_not_wait_for_its_owner(
    double: JmapDouble, feed_of: FeedOf
) -> None:
    double.put(a_mail(1))
    fed = feed_of(double.place)
    double.bends = Bends(status=500)
    assert by_itself(fed).code == "mailbox_misbehaves"
    double.bends = Bends()
    assert by_itself(fed).records_new == 1


@pytest.mark.parametrize("ids", [["M4", "M5"], ["M5", "M4"]])
def test_a_check_of_a_server_that_lists_mails_again_and_again_ends(
    double: JmapDouble, feed_of: FeedOf, settings: Settings, ids: list[str]
) -> None:
    for number in range(2):
        double.put(a_mail(number))
    fed = feed_of(double.place)
    by_itself(fed)
    pages = itertools.cycle((ids, ids[::-1]))
    double.bends = Bends(
        answer=lambda name, _, found: (
            {**found, "ids": next(pages), "limit": 2} if name == "Email/query" else found
        )
    )
    begun = double.requests
    (found,) = compared(fed, settings).differences
    assert found.code == "mailbox_misbehaves"
    assert double.requests - begun < 100


def test_a_check_reads_on_where_the_mail_it_was_at_went(
    double: JmapDouble, feed_of: FeedOf, settings: Settings
) -> None:
    for number in range(4):
        double.put(a_mail(number))
    fed = feed_of(double.place)
    by_itself(fed)
    double.most_objects, pages = 2, iter(range(1_000))

    def one_goes(name: str, asked: Args, found: Args) -> Args:
        if name == "Email/query" and found.get("ids") and next(pages) == 0:
            double.delete(found["ids"][-1])
        return found

    double.bends = Bends(answer=one_goes)
    assert compared(fed, settings).items == 3


def test_a_mail_that_is_refused_costs_itself_only(double: JmapDouble, feed_of: FeedOf) -> None:
    for number in range(3):
        double.put(a_mail(number))
    double.refused = {list(double.mails)[1]}
    result = by_itself(feed_of(double.place))
    assert (result.code, result.rejected, result.records_new) == (None, 1, 2)


def test_what_is_kept_of_runs_that_end_within_changes_has_a_bound(
    double: JmapDouble, feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server may name other mails in each, and never give one of them."""
    monkeypatch.setattr(jmap_sync, "MOST_BEGUN", 50)
    kept, lost = double.put(a_mail(1)), double.put(a_mail(2))
    fed = feed_of(double.place, deletions=FOLLOW)
    by_itself(fed)
    double.delete(lost)
    numbers = itertools.count()

    def others(name: str, asked: Args, found: Args) -> Args:
        if name == "Email/changes":
            return {**found, "created": [f"X{next(numbers)}" for _ in range(30)]}
        return {"type": "serverFail"} if asked.get("ids") else found

    double.bends = Bends(answer=others)
    most = 0
    for _ in range(5):
        assert by_itself(fed).code == "mailbox_misbehaves"
        lines = feed_store(fed.stores).feed_items(fed.feed_id)
        most = max(most, len(KnownJmap.of(lines).begun))
    assert most == 60
    double.bends = Bends()
    for _ in range(2):
        assert by_itself(fed).code is None
    assert list(double.mails) == [kept]
    assert fed.held() == {"messages": 1}
