"""What a mutation changes, and what it leaves."""

from __future__ import annotations

import pytest

from tests.mutants.mutations import is_python, mutations


def changed(module: str) -> list[str]:
    return [each.applied(module.encode()).decode() for each in mutations(module.encode())]


@pytest.mark.parametrize(
    ("line", "mutants"),
    [
        ("x = a < b", ["x = (a <= b)"]),
        ("x = a in b", ["x = (a not in b)"]),
        ("x = a and b", ["x = (a or b)"]),
        ("x = not a", ["x = (a)"]),
        ("x = a * b", ["x = (a // b)"]),
        ("x = 4", ["x = 5"]),
        ("x = True", ["x = False"]),
        ("x = a if b else c", ["x = a if (not b) else c"]),
        ("x = [a for a in b if c]", ["x = [a for a in b if (not c)]"]),
        ("f(a)", ["pass"]),
        ("a.b = c", ["pass"]),
        ("del a[b]", ["pass"]),
        ("raise E", ["pass"]),
        ("def f():\n    return a", ["def f():\n    return None"]),
        ("ä = 'ö', 4", ["ä = 'ö', 5"]),
    ],
)
def test_one_thing_changes_at_a_time(line: str, mutants: list[str]) -> None:
    assert changed(line) == mutants


@pytest.mark.parametrize(
    "line",
    [
        "x: int | None",
        "X = int | None",
        "@dataclass(frozen=True)\nclass A:\n    'text'",
        "class A(B, frozen=True):\n    'text'",
        "x = f'{a + 1}'",
        "x = a + 'text'",
        "assert a < b",
        "if TYPE_CHECKING:\n    import a",
        "assert_never(a)",
        "x = zip(a, b, strict=True)",
        "def f(a):\n    del a",
        "def f() -> int | None:\n    return None",
    ],
)
def test_what_tests_cannot_tell_stays(line: str) -> None:
    assert changed(line) == []


def test_a_condition_is_negated_where_its_comparison_is_not() -> None:
    assert changed("if a == b:\n    c = d") == ["if (a != b):\n    c = d"]
    assert changed("if a < b:\n    c = d") == [
        "if (a <= b):\n    c = d",
        "if (not a < b):\n    c = d",
    ]


def test_what_python_cannot_read_is_told() -> None:
    assert is_python(b"x = 1")
    assert not is_python(b"x = (")
