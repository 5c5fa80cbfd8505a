"""A small export: the clippings of a Kindle, with something broken in them."""

from __future__ import annotations

from sources.tests.specimens.files import Files


def entry(book: str, line: str, *words: str) -> str:
    """One entry as a Kindle writes it."""
    return "\r\n".join((book, line, "", *words, "==========", ""))


_CLIPPINGS = (
    entry(
        "The Odyssey (Homer)",
        "- Your Highlight on page 10 | Location 139-141 | "
        "Added on Friday, December 26, 2014 1:09:52 PM",
        "Tell me, O Muse, of that ingenious hero",
    ),
    entry(
        "The Odyssey (Homer)",
        "- Your Note on page 10 | Location 141 | Added on Friday, December 26, 2014 1:10:30 PM",
        "Which translation?",
    ),
    entry(
        "The Odyssey (Homer)",
        "- Your Bookmark on page 11 | Location 150 | Added on Friday, December 26, 2014 1:11:00 PM",
    ),
    entry(
        "Der Prozess (Kafka, Franz)",
        "- Ihre Markierung auf Seite 28 | bei Position 284-286 | "
        "Hinzugefügt am Freitag, 8. Oktober 2021 20:06:02",
        "Jemand musste Josef K. verleumdet haben",
    ),
    entry("A book without a line", "nothing that tells what it is", "words"),
)
FILES: Files = {"My Clippings.txt": "\ufeff".encode() + "".join(_CLIPPINGS).encode()}
