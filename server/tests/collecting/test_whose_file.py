"""Whose file it is: to which account of its source an export goes where nobody named one."""

from pathlib import Path
from typing import Any

import pytest

from server.tests.cli.import_machine import Machine
from sources.tests.specimens import google_voice
from sources.tests.specimens.files import as_folder


def mailbox(owner: str, *senders: str, first: int = 1) -> bytes:
    """Mails that somebody got."""
    return b"".join(
        f"From {sender} Mon Mar 14 06:30:00 2022\nMessage-ID: <{owner[0]}{n}@example.org>\n"
        f"Date: Mon, 14 Mar 2022 07:{n:02}:00 +0100\nFrom: {sender}\nTo: {owner}\n"
        f"Subject: {n}\n\nwords\n\n".encode()
        for n, sender in enumerate(senders, first)
    )


FRIENDS = [f"friend{n}@example.net" for n in range(8)]
ADA, BOB = "ada@example.org", "bob@example.org"


def names(machine: Machine) -> list[str]:
    with machine.store.snapshot() as snapshot:
        return sorted(str(each.display_name) for each in snapshot.connections())


def imported(machine: Machine, folder: Path, name: str, content: bytes) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    code, printed = machine.run("import", folder / name)
    assert code == 0, printed
    return printed["imports"][0]


def test_a_second_mailbox_is_a_second_account_though_its_file_is_called_alike(
    tmp_path: Path,
) -> None:
    machine = Machine()
    imported(machine, tmp_path / "a", "All mail.mbox", mailbox(ADA, *FRIENDS))
    second = imported(machine, tmp_path / "b", "All mail.mbox", mailbox(BOB, *FRIENDS))
    assert names(machine) == ["E-mail", f"E-mail ({BOB})"]
    assert second["connection"]["is_new"]
    assert "somebody else" in second["connection"]["why_new"]


def test_other_folders_of_a_mailbox_join_it(tmp_path: Path) -> None:
    machine = Machine()
    imported(machine, tmp_path, "Inbox.mbox", mailbox(ADA, *FRIENDS))
    imported(machine, tmp_path, "Archive.mbox", mailbox(ADA, *FRIENDS, first=20))
    sent = b"".join(mailbox(each, ADA, first=40 + n) for n, each in enumerate(FRIENDS))
    imported(machine, tmp_path, "Sent.mbox", sent)
    assert names(machine) == ["E-mail"]


def test_two_accounts_each_get_their_own_next_file(tmp_path: Path) -> None:
    machine = Machine()
    imported(machine, tmp_path, "a.mbox", mailbox(ADA, *FRIENDS))
    imported(machine, tmp_path, "b.mbox", mailbox(BOB, *FRIENDS))
    third = imported(machine, tmp_path, "c.mbox", mailbox(BOB, *FRIENDS, first=30))
    assert third["connection"]["name"] == f"E-mail ({BOB})"
    assert len(names(machine)) == 2


def test_the_accounts_of_two_banks_stay_apart(tmp_path: Path) -> None:
    machine = Machine()

    def statement(account: str) -> bytes:
        return (
            "OFXHEADER:100\nDATA:OFXSGML\nVERSION:102\n\n<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS>"
            f"<CURDEF>EUR<BANKACCTFROM><BANKID>1<ACCTID>{account}<ACCTTYPE>CHECKING</BANKACCTFROM>"
            "<BANKTRANLIST><STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20240105<TRNAMT>-5.00<FITID>a1"
            "<NAME>Ann</STMTTRN></BANKTRANLIST></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>\n"
        ).encode()

    imported(machine, tmp_path, "one.ofx", statement("1111"))
    imported(machine, tmp_path, "two.ofx", statement("2222"))
    imported(machine, tmp_path, "three.ofx", statement("1111").replace(b"a1", b"a2"))
    assert len(names(machine)) == 2


def test_chats_of_one_person_join_and_those_of_another_do_not(tmp_path: Path) -> None:
    machine = Machine()
    imported(machine, tmp_path, "WhatsApp Chat with Ada.txt", chat("Ada", "Me"))
    imported(machine, tmp_path, "WhatsApp Chat with Bo.txt", chat("Bo", "Me"))
    imported(machine, tmp_path, "WhatsApp Chat with Cy.txt", chat("Cy", "Di"))
    assert len(names(machine)) == 2


def chat(*people: str) -> bytes:
    lines = [f"13/01/2024, 21:{n:02} - {each}: hi {n}" for n, each in enumerate(people * 3)]
    return "\n".join(lines).encode() + b"\n"


def test_what_cannot_be_known_is_a_new_account_and_said_so(tmp_path: Path) -> None:
    machine = Machine()

    def card(name: str) -> bytes:
        return f"BEGIN:VCARD\nVERSION:3.0\nFN:{name}\nEMAIL:{name}@x.org\nEND:VCARD\n".encode()

    imported(machine, tmp_path, "work.vcf", card("ann"))
    second = imported(machine, tmp_path, "home.vcf", card("bo"))
    assert "nothing in the file tells" in second["connection"]["why_new"]
    assert names(machine) == ["Contacts", "Contacts (home.vcf)"]
    again = imported(machine, tmp_path, "newer.vcf", card("bo") + card("cy"))
    assert again["connection"]["name"] == "Contacts (home.vcf)"


@pytest.mark.parametrize("again", ["shopping.csv", "other name.csv"])
def test_the_same_content_is_of_the_same_account(again: str, tmp_path: Path) -> None:
    machine = Machine()
    text = b"name,n\nbread,1\nmilk,2\n"
    imported(machine, tmp_path, "shopping.csv", text)
    imported(machine, tmp_path, again, text)
    assert names(machine) == ["shopping"]


def test_a_folder_that_an_account_holds_already_is_of_it_whoever_it_is_of(tmp_path: Path) -> None:
    machine = Machine()
    imported(machine, tmp_path / "a", "All mail.mbox", mailbox(ADA, *FRIENDS))
    folder = as_folder({"b.mbox": mailbox(BOB, FRIENDS[0])}, tmp_path / "b")
    machine.run("import", folder, "--connection", "E-mail")  # as it was before owners counted
    code, printed = machine.run("import", folder)
    assert (code, names(machine)) == (0, ["E-mail"])
    assert printed["imports"][0]["streams"]["messages"]["unchanged"] == 1


def test_tables_of_one_name_that_name_two_accounts_are_two(tmp_path: Path) -> None:
    machine = Machine()
    rows = "IBAN,Day,Sum\n{0},2024-01-05,1\n{0},2024-01-06,2\n"
    imported(machine, tmp_path / "a", "umsaetze.csv", rows.format("DE01").encode())
    imported(machine, tmp_path / "b", "umsaetze.csv", rows.format("DE02").encode())
    assert len(names(machine)) == 2


def test_a_newer_export_joins_what_it_repeats(tmp_path: Path) -> None:
    machine = Machine()
    cards = [f"BEGIN:VCARD\nVERSION:3.0\nUID:{n}\nFN:P{n}\nEND:VCARD\n" for n in range(9)]
    for number in (5, 9):
        files = {"contacts.vcf": "".join(cards[:number]).encode()}
        machine.run("import", as_folder(files, tmp_path / f"export {number}"))
    assert names(machine) == ["Contacts"]


BOOKS = "Book Id,Title,Author,My Rating,Date Read,Date Added\n{},{},Somebody,4,,2026/10/01\n"


def test_the_next_file_of_a_recipe_s_source_joins_it(tmp_path: Path) -> None:
    machine = Machine()
    first = BOOKS.format(1, "One").encode()
    imported(machine, tmp_path, "goodreads_library_export.csv", first)
    second = BOOKS.format(2, "Two").encode()
    report = imported(machine, tmp_path, "goodreads_library_export (1).csv", second)
    assert names(machine) == ["Goodreads"]
    assert report["streams"]["books"]["new"] == 1


def test_a_recipe_s_file_goes_to_the_account_that_its_rows_name(tmp_path: Path) -> None:
    recipe = tmp_path / "cards.toml"
    recipe.write_text(
        'recipe = 1\nkey = "cards"\nname = "Cards"\ndetail = "d"\nhow_to_export = "h"\n'
        '[[stream]]\nname = "payments"\nlabel = "Payments"\ndetail = "d"\nhas = ["no", "card"]\n'
        '[stream.fields]\nnumber = { from = "no", is = "string" }\n'
        'account = { from = "card", is = "word" }\n'
    )
    machine = Machine()
    for number, (file, card) in enumerate([("10", "A1"), ("11", "A1"), ("11", "B2")]):
        path = tmp_path / str(number) / f"payments_2026-{file}.csv"
        path.parent.mkdir()
        path.write_text(f"no,card\n{number},{card}\n")
        assert machine.run("import", path, "--recipe", recipe)[0] == 0
    assert names(machine) == ["Cards", "Cards (B2)"]


def test_texts_of_another_number_are_another_account(tmp_path: Path) -> None:
    machine = Machine()
    for number in ("+15550000001", "+15550000002"):
        sent = google_voice.said("00:00:00", google_voice.who(number, None), "Hello")
        page = google_voice.chat("Bo", sent)
        imported(machine, tmp_path / number, "Bo - Text - 2024-01-15T08_00_00Z.html", page)
    assert len(names(machine)) == 2
