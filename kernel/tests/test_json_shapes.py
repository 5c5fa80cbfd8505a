"""One reader of closed objects: it gathers every fault, or ends at the first."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from pdpp_kernel.json_shapes import (
    MAX_FINDINGS,
    FirstFault,
    Members,
    ShapeFault,
    ShapeFaults,
    items_at,
    text_at,
)

Read = Callable[[Members], object]
WORD = re.compile("[a-z]+")

# What is read, of which object, and where its fault is.
FAULTS: list[tuple[Read, object, str]] = [
    (lambda m: m.text("a"), {"a": ""}, "/a"),
    (lambda m: m.text("a"), {"a": None}, "/a"),
    (lambda m: m.text("a", limit=3), {"a": "four"}, "/a"),
    (lambda m: m.text("a", pattern=WORD), {"a": "B"}, "/a"),
    (lambda m: m.text("a", required=True), {}, "/a"),
    (lambda m: m.choice("a", ("x", "y")), {"a": "z"}, "/a"),
    (lambda m: m.choice("a", ("x", "y")), {"a": ["x"]}, "/a"),
    (lambda m: m.flag("a"), {"a": 1}, "/a"),
    (lambda m: m.integer("a", 1, 5), {"a": 6}, "/a"),
    (lambda m: m.integer("a", 0, 5), {"a": True}, "/a"),
    (lambda m: m.object("a"), {"a": []}, "/a"),
    (lambda m: m.object("a", required=True), {}, "/a"),
    (lambda m: m.object("a").text("b", required=True), {"a": {}}, "/a/b"),
    (lambda m: m.items("a"), {"a": {}}, "/a"),
    (lambda m: m.objects("a"), {"a": [{}, 1]}, "/a/1"),
    (lambda m: m.names("a"), {"a": ["x", ""]}, "/a/1"),
    (lambda m: m.names("a"), {"a": ["x", "y", "x"]}, "/a/2"),
    (lambda m: m.close(), {"a/b": 1}, "/a~1b"),
    (lambda m: m.only(["a"]), {}, ""),
    (lambda m: m.only(["a"]), {"a": 1, "~": 1}, "/~0"),
]


@pytest.mark.parametrize(("read", "value", "path"), FAULTS)
def test_a_fault_is_gathered_or_raised_at_the_same_place(
    read: Read, value: object, path: str
) -> None:
    findings = ShapeFaults()
    read(Members(value, "", findings))
    assert [entry["path"] for entry in findings.entries] == [path]
    with pytest.raises(ShapeFault) as caught:
        read(Members(value, "", FirstFault()))
    assert (caught.value.pointer, caught.value.reason) == (path, "malformed")


def test_what_is_absent_reads_as_empty_and_is_no_fault() -> None:
    members = Members({}, "", FirstFault())
    nested = members.object("a")
    assert (members.text("a"), members.choice("a", ["x"]), members.flag("a")) == ("", "", False)
    assert (members.integer("a", 0, 1), members.items("a"), members.names("a")) == (None, [], ())
    assert (nested.present, nested.text("b", required=True), nested.items("c")) == (False, "", [])
    nested.close()
    members.close()


def test_what_is_at_fault_is_left_out_of_what_is_read() -> None:
    findings = ShapeFaults()
    members = Members({"a": [{"b": "x"}, 1, {"b": "y"}]}, "", findings)
    assert [part.text("b") for part in members.objects("a")] == ["x", "y"]
    assert text_at(7, "/c", findings, 9) == ""
    assert [entry["path"] for entry in findings.entries] == ["/a/1", "/c"]


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_what_is_no_object_is_one_fault_and_has_no_members(value: object) -> None:
    findings = ShapeFaults()
    members = Members(value, "/a", findings)
    assert (members.present, members.text("b", required=True)) == (False, "")
    members.close()
    assert [entry["path"] for entry in findings.entries] == ["/a"]


def test_close_keeps_what_was_asked_for_or_is_kept() -> None:
    members = Members({"asked": 1, "kept": 2}, "", FirstFault())
    assert members.has("asked")
    members.close({"kept"})


def test_a_fault_of_its_own_word_says_that_word() -> None:
    with pytest.raises(ShapeFault) as caught:
        Members({}, "/0", FirstFault()).fault("a", "Not this.", "of_its_own")
    assert (caught.value.pointer, caught.value.reason) == ("/0/a", "of_its_own")


def test_findings_are_bounded_and_names_in_pointers_too() -> None:
    findings = ShapeFaults()
    Members({"x" * 300 + str(n): n for n in range(200)}, "", findings).close()
    assert len(findings.entries) == MAX_FINDINGS
    assert max(len(entry["path"]) for entry in findings.entries) == 201


def test_values_are_read_with_the_place_they_are_given() -> None:
    assert items_at(["x"], "/a", FirstFault()) == [("/a/0", "x")]
    assert text_at("x", "/a/0", FirstFault(), 1) == "x"
    with pytest.raises(ShapeFault):
        text_at("xy", "/a/0", FirstFault(), 1)


def test_what_nobody_asked_for_is_kept_and_a_misspelt_member_is_a_fault() -> None:
    findings = ShapeFaults()
    members = Members({"label": "a", "labels": "b", "colour": "c"}, "/x", findings)
    assert members.text("label") == "a"
    members.keep_rest()
    assert [entry["path"] for entry in findings.entries] == ["/x/labels"]
    assert findings.kept == ["/x/colour"]
