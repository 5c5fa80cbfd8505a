from pathlib import Path

import pytest

from pdpp_kernel.source_item import Skipped
from pdpp_sources.common.errors import ExportNotRecognized
from pdpp_sources.common.times import DATE_ORDERS_TAKEN
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import as_folder, as_zip


def test_a_chat_of_an_iphone(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["whatsapp"], tmp_path / "export.zip"))
    (chat,) = records_of(items, "chats")
    assert chat["name"] == "Ada & Ann"
    messages = records_of(items, "messages")
    assert messages[1]["text"] == "Good evening\non two lines: yes"
    assert messages[1]["sent_at"] == "2024-01-13T21:05:10Z"
    assert messages[2]["author"] == "Ann Byron"
    assert messages[5]["sent_at"] == "2024-02-02T00:00:00Z"
    assert messages[5]["kind"] == "left_out"
    assert records_of(items, "files")[0]["blob_ref"]["size_bytes"] == 2
    assert skips_of(items) == ["bad_date"]


def test_two_equal_messages_in_one_minute_are_two(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["whatsapp"], tmp_path / "export.zip"))
    same = [message["id"] for message in records_of(items, "messages") if message["text"] == "ok"]
    assert len(set(same)) == 2


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        ("1/14/24, 3:05 PM - A: x", "2/1/24, 3:05 PM - A: y", "2024-02-01T15:05:00Z"),
        ("14.01.24, 15:05 - A: x", "02.02.24, 15:05 - A: y", "2024-02-02T15:05:00Z"),
        ("2024-01-14, 15:05 - A: x", "2024-02-03, 15:05 - A: y", "2024-02-03T15:05:00Z"),
        ("[01/02/24, 15:05:09] A: x", "[01/03/24, 15:05:09] A: y", "2024-03-01T15:05:09Z"),
        ("2024/1/14 上午9:05 - A: x", "2024/2/3 下午3:05 - A: y", "2024-02-03T15:05:00Z"),
        ("2024. 1. 14. 오전 9:05 - A: x", "2024. 2. 3. 오후 3:05 - A: y", "2024-02-03T15:05:00Z"),
        (
            "١٤\u200f/١\u200f/٢٠٢٤، ٩:٠٥ ص - A: x",
            "٣\u200f/٢\u200f/٢٠٢٤، ٣:٠٥ م - A: y",
            "2024-02-03T15:05:00Z",
        ),
        ("14/1/24, 9:05 π.μ. - A: x", "3/2/24, 3:05 μ.μ. - A: y", "2024-02-03T15:05:00Z"),
        ("10/1/24, 9:05 a. m. - A: x", "11/1/24, 9:05 p. m. - A: y", "2024-01-11T21:05:00Z"),
        ("13/01/24 21:05:10: A: x", "14/01/24 21:05:10: A: y: z", "2024-01-14T21:05:10Z"),
        ("13.01.14 9:05:10 PM: A: x", "14.01.14 9:05:10 PM: A: y", "2014-01-14T21:05:10Z"),
        ("19:23, 28 Aug 2013 - A: x", "9:05, 3 Sept. 2013 - A: y", "2013-09-03T09:05:00Z"),
        (
            "28 de ago. de 2013 19:23 - A: x",
            "1 de set. de 2013 9:05 - A: y",
            "2013-09-01T09:05:00Z",
        ),
        ("21:05, 13/01/2024 - A: x", "21:05, 14/01/2024 - A: y", "2024-01-14T21:05:00Z"),
        ("13/01/2024, 9:05 SA - A: x", "14/01/2024, 9:05 CH - A: y", "2024-01-14T21:05:00Z"),
        ("9:05 CH, 13/01/2024 - A: x", "9:05 SA, 14/01/2024 - A: y", "2024-01-14T09:05:00Z"),
        ("13/1/2567 21:05 - A: x", "14/1/2567 21:05 - A: y", "2024-01-14T21:05:00Z"),
        ("[13/1/67, 21:05:10] A: x", "[14/1/67, 21:05:10] A: y", "2024-01-14T21:05:10Z"),
        ("[R6/01/13 21:05:10] A: x", "[R6/02/03 9:05:10] A: y", "2024-02-03T09:05:10Z"),
        ("平成25年8月28日 19:23 - A: x", "令和元年12月3日 9:05 - A: y", "2019-12-03T09:05:00Z"),
        ("2024年1月13日 下午9:05 - A: x", "2024年2月3日 上午9:05 - A: y", "2024-02-03T09:05:00Z"),
    ],
)
def test_dates_in_many_orders(tmp_path: Path, first: str, second: str, wanted: str) -> None:
    (tmp_path / "WhatsApp Chat with A.txt").write_text(f"{first}\n{second}\n")
    messages = records_of(read_path(tmp_path), "messages")
    assert [message["sent_at"] for message in messages][-1] == wanted


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (("23:00 30/12 - A: x", "23:00 12/5 - A: y"), ["2022-12-30", "2023-05-12"]),
        (("12/30, 9:05 PM - A: x", "1/2, 9:05 PM - A: y"), ["2023-12-30", "2024-01-02"]),
        (("[12.5. 23:00] A: x", "[13.5. 23:00] A: y"), ["2023-05-12", "2023-05-13"]),
        (("28 Aug 2013 19:23 - A: x", "3 Jan 19:23 - A: y"), ["2013-08-28", "2024-01-03"]),
        (("Aug 28, 7:23 PM - A: x", "Sep 1, 7:23 PM - A: y"), ["2023-08-28", "2023-09-01"]),
        (("Aug 28, 2013, 7:23 PM - A: x", "Feb 1, 7:23 PM - A: y"), ["2013-08-28", "2024-02-01"]),
    ],
)
def test_days_without_a_year_are_the_last_before_the_export_and_that_is_said(
    tmp_path: Path, lines: tuple[str, ...], wanted: list[str]
) -> None:
    name = "WhatsApp Chat with A.txt"
    items = read_path(as_folder({name: "\n".join(lines).encode()}, tmp_path))
    assert [m["sent_at"][:10] for m in records_of(items, "messages")] == wanted
    assert skips_of(items) == ["no_year"]


def test_a_time_and_a_fraction_are_no_beginning_where_dates_have_years(tmp_path: Path) -> None:
    text = "13/01/2024, 21:05 - A: take\n12/30, 9:05 - flour: much\n10:30 1/2 - oven: hot\n"
    (tmp_path / "WhatsApp Chat with A.txt").write_text(text)
    (message,) = records_of(read_path(tmp_path), "messages")
    assert message["text"].count("\n") == 2


@pytest.mark.parametrize(
    "notice", ["Ann joined using this group's invite link", "Ada a créé ce groupe"]
)
def test_a_group_joined_by_link_begins_with_notices_only(tmp_path: Path, notice: str) -> None:
    lines = [f"13/01/2024, 21:05 - {notice}\n"] * 3
    (tmp_path / "WhatsApp Chat with Bakers.txt").write_text("".join(lines))
    assert [each["kind"] for each in records_of(read_path(tmp_path), "messages")] == ["notice"] * 3
    lines += ["13/01/2024, 21:06 - +39 1 hat die Gruppe über den Link betreten\n"] * 300
    lines += ["13/01/2024, 21:07 - Ada: hi\n"]
    (tmp_path / "WhatsApp Chat with Bakers.txt").write_text("".join(lines))
    assert records_of(read_path(tmp_path), "messages")[-1]["text"] == "hi"


def test_what_stands_before_the_first_message_is_named(tmp_path: Path) -> None:
    message = "13/01/2024, 21:05 - Ada: hi\n"
    (tmp_path / "WhatsApp Chat with A.txt").write_text(f"Saved by hand\n{message}{message}")
    items = read_path(tmp_path)
    assert len(records_of(items, "messages")) == 2
    assert skips_of(items) == ["bad_record"]


def test_a_diary_of_dated_lines_is_no_chat(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("13/01/2024, 21:05 - started\n13/01/2024, 21:06 - ended\n")
    with pytest.raises(ExportNotRecognized):
        read_path(tmp_path)


def test_a_line_that_looks_like_another_chat_s_belongs_to_its_message(tmp_path: Path) -> None:
    (tmp_path / "WhatsApp Chat with A.txt").write_text(
        "13/01/2024, 21:05 - A: trains\n14/01/2024 10:00: the early one\n10:05, 14/01/2024 - late\n"
    )
    (message,) = records_of(read_path(tmp_path), "messages")
    assert message["text"].count("\n") == 2


def test_a_text_that_comes_again_when_the_clock_steps_back_is_another_message(
    tmp_path: Path,
) -> None:
    times = ["27/10/24, 02:10", "27/10/24, 02:50", "27/10/24, 02:10", "28/10/24, 00:01"]
    lines = [f"{time} - Ada: ok\n" for time in [*times, "27/10/24, 02:10"]]
    (tmp_path / "WhatsApp Chat with A.txt").write_text("".join(lines))
    items = read_path(tmp_path)
    assert len(records_of(items, "messages")) == 5
    assert skips_of(items) == []


def loose(folder: Path, name: str, *lines: str) -> list[tuple[str, str]]:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"[13/01/24, 21:05:10] {line}\n" for line in lines))
    items = read_path(folder / name)
    assert skips_of(items) == ["unnamed_chat"]
    return [(chat["id"], chat["name"]) for chat in records_of(items, "chats")]


def test_loose_chats_are_known_by_how_they_begin(tmp_path: Path) -> None:
    bread = ("Bread: \u200eMessages and calls are end-to-end encrypted.", "Ada: hi")
    ((group, name),) = loose(tmp_path / "a", "_chat.txt", *bread)
    assert name == "Bread"
    ((other, people),) = loose(tmp_path / "b", "_chat.txt", "Ann: hi", "Ada: hello")
    assert people == "Ann, Ada"
    assert other != group
    longer = loose(tmp_path / "c", "_chat (2).txt", *bread, "Ann: what is new")
    assert longer == [(group, name)]


def test_two_loose_chats_in_one_folder_are_two(tmp_path: Path) -> None:
    loose(tmp_path, "_chat.txt", "Ann: hi")
    loose(tmp_path, "_chat 2.txt", "Bob: hi")
    items = read_path(tmp_path)
    assert {chat["name"] for chat in records_of(items, "chats")} == {"Ann", "Bob"}


def test_a_file_that_was_exported_without_media_is_reported(tmp_path: Path) -> None:
    (tmp_path / "chat.txt").write_text("1.2.24, 15:05 - A: IMG-1.jpg (Datei angehängt)\nFoto\n")
    items = read_path(tmp_path)
    assert records_of(items, "files")[0]["filename"] == "IMG-1.jpg"
    assert skips_of(items) == ["missing_attachment"]


def test_a_chat_is_known_wherever_the_first_look_at_it_ends(tmp_path: Path) -> None:
    line = "\u200e[13/01/24, 9:05:10\u202fPM] Ада: {}\n"
    for padding in range(4):
        text = line.format("x" * padding) + line.format("Добрый вечер, как дела? " * 400)
        (tmp_path / "_chat.txt").write_text(text, encoding="utf-8")
        assert len(records_of(read_path(tmp_path), "messages")) == 2


def kinds(tmp_path: Path, *texts: str) -> list[tuple[str, str | None]]:
    lines = [f"[13/01/24, 21:05:{n:02}] {text}\n" for n, text in enumerate(texts, 10)]
    (tmp_path / "chat.txt").write_text("".join(lines))
    messages = records_of(read_path(tmp_path), "messages")
    return [(message["kind"], message["author"]) for message in messages]


def test_what_the_program_writes_in_somebody_s_name_is_a_notice(tmp_path: Path) -> None:
    found = kinds(tmp_path, "Ada: \u200eMissed voice call", "Ada: Missed you", "Ada added Ann")
    assert found == [("notice", "Ada"), ("message", "Ada"), ("notice", None)]


@pytest.mark.parametrize(
    ("notice", "author"),
    [
        ("Ada: \u200eAda added Ann", None),
        ("Ada: \u200eYou changed the subject to “Bread”", None),
        ("Family: \u200eNachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt.", None),
        ("Ada: \u200eVideoanruf, \u200e5 Min.", "Ada"),
        ("Ada: \u200eLlamada perdida", "Ada"),
        ("Ada: \u200e未接语音通话", "Ada"),
        ("Family: \u200e消息和通话都进行端到端加密。对话之外的任何人都无法读取。", None),
        ("Family: \u200e訊息和通話經端對端加密。對話以外的任何人都不能讀取。", None),
        ("Family: \u200eメッセージと通話はエンドツーエンドで暗号化されています。", None),
        ("Family: \u200e메시지와 통화는 종단간 암호화됩니다.", None),
        ("Family: \u200eMeddelanden och samtal är totalsträckskrypterade.", None),
        ("Family: \u200eMesajlar ve aramalar uçtan uca şifrelidir.", None),
        ("Family: \u200eTin nhắn và cuộc gọi được mã hóa đầu cuối.", None),
        ("Family: \u200eMesej dan panggilan disulitkan hujung ke hujung.", None),
        ("Ada: \u200eAda changed the subject to “Call mom”", None),
        ("Ada: \u200eAda created group “Call Center”", None),
        ("Ada: \u200eAda hat die Gruppe „Anruf“ erstellt", None),
        ("Ada: \u200eAda a créé le groupe « Appel »", None),
        ("Ada: \u200eAda将群组名称更改为“通话”", None),
        ("Ada: \u200eAdaがグループ名を「通話」に変更しました", None),
    ],
)
def test_nobody_wrote_what_the_program_tells_of_somebody(
    tmp_path: Path, notice: str, author: str | None
) -> None:
    assert kinds(tmp_path, notice, "Ann: hi") == [("notice", author), ("message", "Ann")]
    [chat] = records_of(read_path(tmp_path), "chats")
    assert chat["people"] == [*([author] if author else []), "Ann"]


def test_a_place_by_any_map_was_sent_by_a_person(tmp_path: Path) -> None:
    place = "Ada: \u200eBritish Library (96 Euston Rd, London): https://foursquare.com/v/4ac5"
    assert kinds(tmp_path, place) == [("message", "Ada")]


@pytest.mark.parametrize(
    ("days", "told"),
    [
        (("12/9/20", "12/9/20"), ["ambiguous_dates"]),
        (("12/9/20", "13/9/20"), []),
        (("9/12/20", "10/11/20", "11/10/20"), []),
        (("12/12/20", "12/12/20"), []),
        (("12.9.20", "12.9.20"), []),
        (("2020/9/12", "2020/9/12"), []),
    ],
)
def test_a_chat_whose_dates_have_two_meanings_says_so(
    tmp_path: Path, days: tuple[str, ...], told: list[str]
) -> None:
    lines = (f"{day}, 21:0{n} - Ada: hi\n" for n, day in enumerate(days))
    (tmp_path / "With Ann.txt").write_text("".join(lines))
    items = read_path(tmp_path)
    assert skips_of(items) == told
    reasons = [item.reason for _, item in items if isinstance(item, Skipped)]
    assert all(reason is DATE_ORDERS_TAKEN["dmy"] for reason in reasons)


def test_a_notice_that_quotes_a_colon_has_no_author(tmp_path: Path) -> None:
    found = kinds(tmp_path, "Ada: hi", "Ada created group “Bread: rye”", 'Ada changed to "a: b"')
    assert found == [("message", "Ada"), ("notice", None), ("notice", None)]


def test_a_site_with_a_remark_is_no_file(tmp_path: Path) -> None:
    found = kinds(tmp_path, "Ada: example.org (my own site)", "Ada: a.pdf (file attached) or so")
    assert [kind for kind, _ in found] == ["message", "message"]


@pytest.mark.parametrize(
    "words",
    [
        "This message was deleted",
        "This message was deleted.",
        "\u200eYou deleted this message.",
        "Diese Nachricht wurde gelöscht.",
        "Diese Nachricht wurde von Admin Leon gelöscht.",
        "Se eliminó este mensaje.",
        "Mensagem apagada",
        "このメッセージは削除されました。",
    ],
)
def test_a_deleted_message_is_none_of_its_author_s(tmp_path: Path, words: str) -> None:
    lines = f"[12.01.24, 21:05:00] Ann: {words}\n[12.01.24, 21:06:00] Ann: This was deleted, too\n"
    (tmp_path / "WhatsApp Chat with Ann.txt").write_text(lines)
    deleted, said = records_of(read_path(tmp_path), "messages")
    assert (deleted["kind"], deleted["author_kind"], deleted["author"]) == (
        "deleted",
        "notice",
        "Ann",
    )
    assert (said["kind"], said["author_kind"]) == ("message", "person")


LEFT_OUT = """\
\u200e[27.09.23, 09:18:41] Klasse: \u200eNachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt.
\u200e[27.09.23, 09:20:00] Ada: \u200eBild weggelassen
\u200e[27.09.23, 09:21:00] ~\u202fBen: \u200eSticker weggelassen
\u200e[27.09.23, 09:22:00] Ada: Rechner.pdf • \u200e1 Seite \u200eDokument weggelassen
[27.09.23, 09:23:00] Ben: image omitted
[27.09.23, 09:24:00] Ben: <Media omitted>
\u200e[27.09.23, 09:25:00] Ada: \u200eUMFRAGE:
Wann lernen wir?
\u200e[27.09.23, 09:26:00] Ada: \u200eStandort: https://maps.google.com/?q=48.2,16.3
\u200e[27.09.23, 09:27:00] Ada: \u200eAda hat das Gruppenbild geändert.
"""


def test_media_that_an_export_left_out_were_sent_by_people(tmp_path: Path) -> None:
    (tmp_path / "_chat.txt").write_text(LEFT_OUT, encoding="utf-8")
    items = read_path(tmp_path)
    messages = records_of(items, "messages")
    assert [(each["kind"], each["author_kind"], each["file_count"]) for each in messages] == [
        ("notice", "notice", 0),
        ("left_out", "person", 1),
        ("left_out", "person", 1),
        ("left_out", "person", 1),
        ("message", "person", 0),
        ("left_out", "person", 1),
        ("message", "person", 0),
        ("message", "person", 0),
        ("notice", "notice", 0),
    ]
    files = records_of(items, "files")
    assert [(each["filename"], each["mime_type"]) for each in files] == [
        (None, "image/*"),
        (None, "image/webp"),
        ("Rechner.pdf", "application/pdf"),
        (None, None),
    ]
    assert [each["message_id"] for each in files] == [
        each["id"] for each in messages if each["file_count"]
    ]
    assert "missing_attachment" not in skips_of(items)
