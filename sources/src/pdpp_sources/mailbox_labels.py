"""Flags of a mail as labels, in the words that Gmail's own export has for them.

Source: RFC 3501 2.3.2; docs/contract/feeds.md 10.
"""

from __future__ import annotations

from collections.abc import Sequence

from pdpp_sources.common.text import one_line

MOST_LABELS = 100
_LONGEST = 200
_OF_FLAGS = {"\\flagged": "Starred", "\\answered": "Answered", "\\draft": "Draft"}
_OF_KEYWORDS = {"$forwarded": "Forwarded", "$junk": "Junk", "$phishing": "Phishing"}


def labels_of(flags: Sequence[str], of_gmail: Sequence[str] | None) -> list[str]:
    r"""The labels of a mail, each once; `of_gmail` are those that Gmail tells beside its flags.

    In: `\Flagged`, `Invoices`.  Out: `Unread`, `Starred`, `Invoices`.
    """
    lower = {each.lower() for each in flags}
    found = [] if "\\seen" in lower else ["Unread"]
    found += [label for flag, label in (_OF_FLAGS | _OF_KEYWORDS).items() if flag in lower]
    keywords = [] if of_gmail is not None else [e for e in flags if e[:1] not in ("\\", "$")]
    given = [each.removeprefix("\\") for each in of_gmail or ()]
    words = [one_line(each, _LONGEST) for each in (*given, *sorted(keywords))]
    return list(dict.fromkeys(each for each in (*found, *words) if each))[:MOST_LABELS]
