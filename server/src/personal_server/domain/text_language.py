"""The language of a text, kept for texts that were asked about lately.

Rule: it follows from the one text alone.  A language that another field or record decided would
tell of that field or record by what a search then finds.  What tells it: `language_signs.py`.
Source: docs/contract/resource-server.md 11.2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from personal_server.domain.language_signs import languages_of

# So much of a text says what language it is in.
_LANGUAGE_CHARS = 200
# The texts of few records are read again with every search.
_MOST_KNOWN = 4_096
# After so many the model looks at texts side by side, which takes 30 MB.
_MANY, _MANY_WITH_ROOM = 4_000, 500


def language_of(text: str) -> str | None:
    """The name of the stemmer for the language of a text; `None` where the language has none."""
    return _KNOWN[text[:_LANGUAGE_CHARS]]


def foretell(texts: Iterable[str]) -> None:
    """Tell the languages of many texts at once, in less time, so that `language_of` knows them."""
    heads = {text[:_LANGUAGE_CHARS] for text in texts} - _KNOWN.keys()
    if heads:
        _KNOWN.tell(heads)


def take_room() -> None:
    """Be quicker and take more memory: in a process that ends with its work."""
    _KNOWN.many = _MANY_WITH_ROOM


class _Known(dict[str, str | None]):
    """Languages by the beginnings of texts; those that were not foretold are told on demand."""

    many = _MANY

    def __missing__(self, head: str) -> str | None:
        return self.tell([head])[head]

    def tell(self, heads: Collection[str]) -> Mapping[str, str | None]:
        """Those known before go where there is no room for all."""
        languages = languages_of(heads, self.many)
        if len(self) + len(languages) > _MOST_KNOWN:
            self.clear()
        self.update(languages)
        return languages


_KNOWN = _Known()
