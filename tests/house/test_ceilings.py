"""What is measured of the house and may only fall: whoever lowers a figure lowers its ceiling too.

They are ceilings and no targets: a module is as long as its noun.
"""

from __future__ import annotations

import re
from collections import Counter

from pages.parts import modules, short_name

MOST_TWO_NOUNS = 2
MOST_SHARED_NAMES = 57
MOST_MODULES_OF_SHARED_NAMES = 142
INNER_HEADING = re.compile(r"^# (?:Rule|Source)|^# .*-{10,}$", re.MULTILINE)
OF_EVERY_PACKAGE = {"__init__.py", "__main__.py"}


def test_a_module_has_one_heading() -> None:
    two = [short_name(p) for p in modules() if INNER_HEADING.search(p.read_text(encoding="utf-8"))]
    assert len(two) <= MOST_TWO_NOUNS, two


def test_a_file_name_means_one_thing() -> None:
    names = Counter(path.name for path in modules() if path.name not in OF_EVERY_PACKAGE)
    shared = {name: times for name, times in names.items() if times > 1}
    assert len(shared) <= MOST_SHARED_NAMES, sorted(shared.items(), key=lambda pair: -pair[1])
    assert sum(shared.values()) <= MOST_MODULES_OF_SHARED_NAMES


def test_an_inner_heading_is_found() -> None:
    assert INNER_HEADING.search("x = 1\n\n# Rule: one thing.\n")
    assert INNER_HEADING.search("# The second noun ----------------------\n")
    assert not INNER_HEADING.search('"""A module.\n\nRule: one thing.\n"""\n# a reason\n')
