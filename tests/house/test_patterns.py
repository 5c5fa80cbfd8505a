"""Patterns mean the same on every Python, those of 3.11.0 to 3.11.4 with their fault included."""

from __future__ import annotations

import re

from pages import parts

CHARACTER_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\\n])*\]")
POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{[\d,]+\}{1,2})\+")
# Each of these cannot fail once a round has gone past its first character, but for the lines of
# mail, which are cut back to the last whole one.
SOUND = {
    "pdpp_sources/common/json_stream.py": ["STRING"],
    "pdpp_sources/vcards.py": ["pieces"],
    "pdpp_sources/mail/message.py": ["_BASE64"],
}


def test_no_group_is_repeated_possessively() -> None:
    """Before Python 3.11.5 such a repeat ends where its last, failed round got to.

    An atomic group around a plain repeat, `(?>(?:…)*)`, ends where that round began everywhere.
    """
    found: dict[str, list[str]] = {}
    for path in parts.modules():
        for line in path.read_text(encoding="utf-8").splitlines():
            if " = " in line and POSSESSIVE_GROUP.search(CHARACTER_CLASS.sub("x", line)):
                name = line.partition(" = ")[0].strip()
                found.setdefault(parts.short_name(path), []).append(name)
    assert found == SOUND
