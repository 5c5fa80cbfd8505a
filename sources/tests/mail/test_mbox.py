import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_sources.mail.mbox import split_mbox

SEPARATOR = b"From a@b Mon Jan  1 00:00:00 2024\n"
bodies = st.lists(
    st.text("ab>From \n", max_size=40).map(lambda text: b"A: b\n\n" + text.encode() + b"\n")
)


def test_a_from_line_in_the_text_does_not_cut() -> None:
    mbox = SEPARATOR + b"Subject: x\n\nFrom here on\n\nFrom you I hear\n\n"
    assert [message.raw for message in split_mbox(io.BytesIO(mbox))] == [
        b"Subject: x\n\nFrom here on\n\nFrom you I hear\n\n"
    ]


def test_quoted_from_lines_are_unquoted_once() -> None:
    mbox = SEPARATOR + b"A: b\n\n>From x\n>>From y\n\n"
    (message,) = split_mbox(io.BytesIO(mbox))
    assert message.raw == b"A: b\n\nFrom x\n>From y\n\n"


def test_line_ends_of_windows_cut_too() -> None:
    mbox = (SEPARATOR + b"A: b\n\ntext\n\n" + SEPARATOR + b"A: c\n\ntext\n").replace(b"\n", b"\r\n")
    assert len(list(split_mbox(io.BytesIO(mbox)))) == 2


def test_a_file_that_ends_in_a_line_says_so() -> None:
    mbox = SEPARATOR + b"A: b\n\nwhole\n\n" + SEPARATOR + b"A: b\n\nha"
    assert [message.complete for message in split_mbox(io.BytesIO(mbox))] == [True, False]


@pytest.mark.parametrize(
    "line",
    [
        "From ada@example.org",
        "From ada at example.org  Tue, 5 Mar 2024 10:00",
        "From ada@example.org Tue Mar  5 10:00 98",
        'From "Ada Lovelace" <ada@example.org> 2024-03-05T10:00:00Z',
        "From MAILER-DAEMON",
        "From ada 05/03/2024",
    ],
)
def test_lines_with_odd_dates_or_none_separate_where_headers_follow(line: str) -> None:
    one = f"{line}\nFrom: a@b\nSubject: x\n\ntext\n\n".encode()
    assert len(list(split_mbox(io.BytesIO(one + one + one)))) == 3


def test_a_dated_line_separates_without_an_empty_line_before_it() -> None:
    one = b"From a@b Mon Jan  1 00:00:00 2024\nReceived: x\n\ntext\n"
    assert len(list(split_mbox(io.BytesIO(one + one)))) == 2


def test_words_that_look_like_a_separator_are_text_where_no_headers_follow() -> None:
    body = b"\nFrom here\nto there: 10:30 is late\n\nFrom ada@example.org\n I heard\n\n"
    text = body + b"From what she said at 10:30 in 2023,\nand more\n\nFrom me to you\nTo: x\n\n"
    assert len(list(split_mbox(io.BytesIO(SEPARATOR + b"A: b\n" + text)))) == 1


def test_a_message_beyond_the_limit_is_passed_over_and_the_next_one_read() -> None:
    after = SEPARATOR + b"A: c\n\nsmall\n\n"
    for size in (1_000, 900_000, 5_000_000):
        big = SEPARATOR + b"A: b\n\n" + b"x" * size + b"\n\n"
        messages = list(split_mbox(io.BytesIO(big + after), largest_bytes=1_000))
        assert [message.raw is None for message in messages] == [True, False]
        assert [message.offset for message in messages] == [0, len(big)]


@settings(max_examples=50, deadline=None)
@given(bodies, st.integers(1, 64))
def test_offsets_lead_back_to_the_same_messages(contents: list[bytes], chunk: int) -> None:
    mbox = b"".join(SEPARATOR + body.rstrip(b"\n") + b"\n\n" for body in contents)
    messages = list(split_mbox(Dribble(mbox, chunk)))
    assert len(messages) == len(contents)
    for number, message in enumerate(messages):
        rest = split_mbox(io.BytesIO(mbox[message.offset :]), message.offset)
        assert list(rest) == messages[number:]


class Dribble(io.BytesIO):
    """A stream that gives a few bytes at a time."""

    def __init__(self, content: bytes, chunk: int) -> None:
        super().__init__(content)
        self._chunk = chunk

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self._chunk)
