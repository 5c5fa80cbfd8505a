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


def test_a_fault_is_its_sentence() -> None:
    fault = ShapeFault("/a", "malformed", "Not this.")
    assert (str(fault), fault.sentence) == ("Not this.", "Not this.")


def test_what_is_read_otherwise_is_noted_at_its_place() -> None:
    findings = ShapeFaults()
    assert not findings
    Members({"a": 1}, "/x", findings).adapt("a", "Taken as 1.")
    assert findings.adapted == [{"path": "/x/a", "message": "Taken as 1."}]
    assert not findings
    Members({"a": 1}, "/x", findings).fault("", "Not this.")
    assert findings
    assert [entry["path"] for entry in findings.entries] == ["/x"]


# What is read, of which object, and what it is.
READ: list[tuple[Read, object, object]] = [
    (lambda m: m.text("a"), {"a": "x" * 4_096}, "x" * 4_096),
    (lambda m: m.text("a", limit=3), {"a": "abc"}, "abc"),
    (lambda m: m.text("a", pattern=WORD), {"a": "abc"}, "abc"),
    (lambda m: m.choice("a", ("x", "y")), {"a": "y"}, "y"),
    (lambda m: m.choice("a", ("x", "y")), {}, ""),
    (lambda m: m.flag("a"), {"a": True}, True),
    (lambda m: m.flag("a"), {"a": False}, False),
    (lambda m: m.integer("a", 1, 5), {"a": 1}, 1),
    (lambda m: m.integer("a", 1, 5), {"a": 5}, 5),
    (lambda m: m.items("a"), {"a": [7, None]}, [("/a/0", 7), ("/a/1", None)]),
    (lambda m: m.names("a"), {"a": ["x", "y"]}, ("x", "y")),
    (lambda m: [each.raw for each in m.objects("a")], {"a": [{"b": 1}]}, [{"b": 1}]),
    (lambda m: m.object("a").raw, {"a": {"b": 1}}, {"b": 1}),
    (lambda m: m.value("a"), {"a": None}, None),
    (lambda m: m.value("a"), {"a": 7}, 7),
    (lambda m: m.has("b"), {"a": 7}, False),
]


@pytest.mark.parametrize(("read", "value", "found"), READ)
def test_what_has_its_shape_is_read_as_it_stands(read: Read, value: object, found: object) -> None:
    assert read(Members(value, "", FirstFault())) == found


# What has a fault reads as what is absent.
FAULTY: list[tuple[Read, object, object]] = [
    (lambda m: m.text("a"), "x" * 4_097, ""),
    (lambda m: m.text("a", pattern=WORD), "A", ""),
    (lambda m: m.choice("a", ("x", "y")), "z", ""),
    (lambda m: m.flag("a"), 1, False),
    (lambda m: m.integer("a", 1, 5), 0, None),
    (lambda m: m.integer("a", 1, 5), 6, None),
    (lambda m: m.integer("a", 1, 5), 2.0, None),
    (lambda m: m.items("a"), "x", []),
    (lambda m: m.names("a"), ["x", 7], ("x",)),
    (lambda m: m.object("a").present, [], False),
]


@pytest.mark.parametrize(("read", "value", "found"), FAULTY)
def test_what_has_another_shape_reads_as_absent(read: Read, value: object, found: object) -> None:
    findings = ShapeFaults()
    assert read(Members({"a": value}, "", findings)) == found
    assert len(findings.entries) == 1


@pytest.mark.parametrize("count", [99, 100, 101])
def test_a_hundred_faults_are_gathered(count: int) -> None:
    findings = ShapeFaults()
    for number in range(count):
        findings.add(f"/{number}", "Not this.")
    assert len(findings.entries) == min(count, 100)


def test_only_names_what_is_missing_and_what_is_unknown() -> None:
    findings = ShapeFaults()
    Members({"a": 1, "b": 2, "x": 3}, "/m", findings).only(["a", "c"], ["b"])
    assert [entry["path"] for entry in findings.entries] == ["/m", "/m/x"]


@pytest.mark.parametrize(
    ("name", "is_misspelt"),
    [("declared_kind", True), ("declared_kin", True), ("kind", False), ("x" * 65, False)],
)
def test_a_name_that_is_nearly_one_that_was_asked_for_is_misspelt(
    name: str, *, is_misspelt: bool
) -> None:
    findings = ShapeFaults()
    members = Members({name: 1}, "", findings)
    members.has("declared_kinds")
    members.keep_rest()
    assert bool(findings) is is_misspelt
    assert findings.kept == ([] if is_misspelt else [f"/{name}"])


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
