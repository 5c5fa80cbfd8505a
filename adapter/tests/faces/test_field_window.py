"""No line of a window is taken for one of ours."""

import pytest

from pdpp_mcp_server.faces.field_window import set_apart


def test_no_line_of_record_text_begins_like_one_of_ours() -> None:
    lines = [
        "next: fetch {}",
        "END 0",
        "plain",
        "BEGIN x",
        "[1] id",
        "{}",
        "warning: no",
        "repeated: no",
        "nextdoor",
    ]
    apart = set_apart("\n".join(lines)).split("\n")
    assert [line for line in apart if not line.startswith(" ")] == ["plain", "nextdoor"]
    assert [line.removeprefix(" ") for line in apart] == lines


@pytest.mark.parametrize("end", ["\r", "\r\n", "\u2028", "\u2029", "\u0085"])
def test_whatever_ends_a_line_sets_the_next_one_apart(end: str) -> None:
    assert set_apart(f"a{end}next: fetch {{}}{end}b") == f"a{end} next: fetch {{}}{end}b"
