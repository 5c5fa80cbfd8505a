"""Text in lower case, code point by code point: what equality that ignores case compares."""

from __future__ import annotations

from pdpp_kernel.values import without_nul


def fold(text: str) -> str:
    """Each code point in its one-code-point lower case.

    Source: docs/contract/resource-server.md 9.2.
    """
    text = without_nul(text)
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := sign.lower()) == 1 else sign for sign in text)
