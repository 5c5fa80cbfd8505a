"""Threads over several imports: whoever comes late joins, and what is there stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.cli.import_machine import Machine
from server.tests.storage.conftest import sqlite_store

A = "Message-ID: <a@x>\nSubject: Bread\n"
B = "Message-ID: <b@x>\nSubject: Re: Bread\nIn-Reply-To: <a@x>\n"
C = "Message-ID: <c@x>\nSubject: Re: Bread\nIn-Reply-To: <b@x>\n"
D = "Message-ID: <d@x>\nSubject: Re: Bread\nReferences: <x@x> <c@x>\n"
NAMED = {"A": A, "B": B, "C": C, "D": D}
OTHER = "Message-ID: <o@x>\nSubject: Bread\n"
LIST = "List-Id: Bakers <bakers.example.org>\n"


def mail(headers: str, day: int = 1, *, who: str = "ada", to: str = "To: ann@x\n") -> str:
    dated = f"Date: {day:02} Mar 2024 10:00:00 +0000\nFrom: {who}@x\n{to}"
    return f"From - Fri Mar  1 10:00:00 2024\n{dated}{headers}\nText of {headers}\n\n"


def import_each(machine: Machine, folder: Path, *mails: str) -> list[Data]:
    """Each mail in an import of its own; the tallies."""
    found: list[Data] = []
    for number, each in enumerate(mails):
        path = folder / str(number) / "Inbox"
        path.parent.mkdir(exist_ok=True)
        path.write_text(each)
        found.append(machine.streams(path)["messages"])
    return found


def threads(store: RecordStore) -> dict[str, str]:
    """The thread of each mail by its Message-ID."""
    with store.snapshot() as snapshot:
        (held,) = [each for each in snapshot.stored_streams() if each.stream == "messages"]
        rows = [row.data for row in snapshot.export(held.connection_id, held.stream)]
    return {str(row["internet_message_id"]): str(row["thread_id"]) for row in rows}


@pytest.mark.parametrize("order", ["ABCD", "DCBA", "CADB"])
def test_a_thread_is_one_in_whatever_order_its_mails_come(order: str, tmp_path: Path) -> None:
    machine = Machine()
    import_each(machine, tmp_path, *(mail(NAMED[each]) for each in order), mail(OTHER))
    found = threads(machine.store)
    other = found.pop("o@x")
    assert len(found) == 4
    assert len(set(found.values())) == 1
    assert other not in found.values()


def test_a_thread_joined_in_sqlite_changes_nothing_when_imported_again(tmp_path: Path) -> None:
    with sqlite_store(tmp_path / "store") as store:
        machine = Machine(store)
        *_, late = import_each(machine, tmp_path, *map(mail, (C, A, B)))
        assert late == {
            "read": 1,
            "rejected": 0,
            "new": 1,
            "updated": 0,
            "unchanged": 0,
            "joined_another_thread": 1,
        }
        joined = threads(store)
        assert len(set(joined.values())) == 1
        for each in import_each(machine, tmp_path, *map(mail, (B, C, A))):
            assert each == {"read": 1, "rejected": 0, "new": 0, "updated": 0, "unchanged": 1}
        assert threads(store) == joined


def test_one_file_joins_what_comes_later_in_it(tmp_path: Path) -> None:
    machine = Machine()
    import_each(machine, tmp_path, "".join(map(mail, (D, C, B, A))))
    assert len(set(threads(machine.store).values())) == 1


def test_an_interrupted_import_joins_them_when_it_goes_on(tmp_path: Path) -> None:
    machine = Machine()
    import_each(machine, tmp_path, *map(mail, (C, A)))
    late = tmp_path / "late" / "Inbox"
    late.parent.mkdir()
    late.write_text(mail(B))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine.store, "leave_thread_marks", _interrupted)
        assert machine.run("import", late)[0] != 0
    machine.run("import", late)
    import_each(machine, tmp_path, *map(mail, (D, C)))
    assert len(set(threads(machine.store).values())) == 1


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def named(headers: str, number: int) -> str:
    return f"Message-ID: <{number}@x>\n{headers}"


LATE = {
    "an answer through the list": (
        mail(named("Subject: RE[2]: [bakers] Rye\n" + LIST, 2), 20, who="bob"),
        True,
    ),
    "one after more than a month": (
        mail(named("Subject: Re: Rye\n" + LIST, 2), 31, who="bob").replace("Mar 2024", "May 2024"),
        False,
    ),
    "one with another subject": (mail(named("Subject: Re: Rye bread\n" + LIST, 2), 2), False),
    "one through another list": (
        mail(named("Subject: Re: Rye\nList-Id: <b.x>\n", 2), 2, who="bob", to=""),
        False,
    ),
    "one that answers another mail": (
        mail(named("Subject: Re: Rye\nIn-Reply-To: <z@x>\n" + LIST, 2), 2),
        False,
    ),
    "no answer": (mail(named("Subject: Rye\n" + LIST, 2), 2), False),
}


@pytest.mark.parametrize(
    ("late", "late_first"), [(next(iter(LATE)), True), *((each, False) for each in LATE)]
)
def test_an_answer_that_names_nothing_is_joined_by_subject_list_and_month(
    late: str, late_first: bool, tmp_path: Path
) -> None:
    machine = Machine()
    text, joins = LATE[late]
    first = mail(named("Subject: [Bakers]  Rye\n" + LIST, 1))
    import_each(machine, tmp_path, *([text, first] if late_first else [first, text]))
    assert (len(set(threads(machine.store).values())) == 1) is joins


@pytest.mark.parametrize(
    ("sender", "to", "joins"),
    [
        ("ann", "To: ada@x\n", True),
        ("bob", "To: Ada <ADA@x>\nCc: ann@x\n", True),
        ("bob", "To: ann@x\n", False),
        ("ada", "To: bob@x\n", False),
    ],
)
def test_without_a_list_two_people_of_the_first_mail_must_be_in_the_answer(
    sender: str, to: str, joins: bool, tmp_path: Path
) -> None:
    machine = Machine()
    first = mail(named("Subject: Rye\n", 1))
    answer = mail(named("Subject: AW: Rye\n", 2), 9, who=sender, to=to)
    import_each(machine, tmp_path, first, answer)
    assert (len(set(threads(machine.store).values())) == 1) is joins


def test_threads_that_gmail_names_stay_as_gmail_has_them(tmp_path: Path) -> None:
    machine = Machine()
    import_each(
        machine, tmp_path, mail(f"X-GM-THRID: 1\n{A}"), mail(f"X-GM-THRID: 2\n{B}"), mail(C)
    )
    found = threads(machine.store)
    assert found["a@x"] != found["b@x"] == found["c@x"]
