"""The Google Voice reader: texts, calls and voicemails, from the pages (HTML) of Google Takeout.

Source: pages that owners published in the tests of readers, with names and numbers changed. Each
page is some days of one conversation, or one call; what it means stands in its classes and links,
which are the same in every language. Files lie beside it, named by their page and place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from pdpp_kernel.person_fields import PersonForm
from pdpp_kernel.source_item import Data, SourceItem
from pdpp_sources.common.chats import FILES, chat_messages, chat_name, in_chat, message_author
from pdpp_sources.common.declaration import (
    StreamForm,
    author_kind,
    blob,
    caseless,
    declaration,
    flag,
    integer,
    key,
    moment,
    names,
    person,
    sensitive,
    text,
    word,
    written_by,
)
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    without_repeats,
)
from pdpp_sources.common.unit_fields import in_unit

_HEAD_BYTES = 32 * 1024  # the style sheet comes first
_PAGE = re.compile(rb'<div class="(?:hChatLog hfeed|haudio)">')
_BESIDE = re.compile(r".* - \d{4}-\d\d-\d\dT\d\d_\d\d_\d\dZ(?:-\d+-\d+)?(?:\(\d+\))?")
CHATS = StreamForm(
    "chats",
    "Your text conversations",
    "Name and numbers of each conversation.",
    [
        key(),
        chat_name("Names of the others, or their numbers"),
        person(
            sensitive(names("members", "Numbers of its members, but yours")), PersonForm.WRITTEN
        ),
    ],
    children={"messages": ("messages", "chat_id")},
)
MESSAGES = chat_messages(
    "Your text messages",
    "Text, author and time of every text message.",
    [
        *in_chat(description="conversation"),
        moment("sent_at", "When it was sent or came in, in UTC", event=True),
        message_author("author", "Name or number of its author; me"),
        author_kind(),
        person(
            sensitive(caseless(word("number", "Number of its author, but yours"))),
            PersonForm.WRITTEN,
            named_by="author",
        ),
        flag("is_from_me", "Whether you sent it"),
        sensitive(word("own_number", "Your number, where you sent it")),
        sensitive(text("text", "What it says", title=True)),
        integer("file_count", "Number of files", summed=True),
    ],
    traffic=("Who wrote when", ["chat_name", "sent_at", "author"]),
)
CALLS = StreamForm(
    "calls",
    "Your calls and voicemails",
    "Number, time, direction and length of each call; words and sound of each voicemail.",
    [
        key(),
        moment("began_at", "When it began, in UTC", event=True),
        person(
            sensitive(written_by(caseless(word("number", "Number of the other")))),
            PersonForm.WRITTEN,
            named_by="name",
        ),
        caseless(text("name", "Name in your contacts", title=True)),
        word("direction", "incoming, outgoing, missed, voicemail, recorded"),
        in_unit(integer("duration", "How long it was, in seconds", summed=True), unit="s"),
        sensitive(text("transcript", "What was said, as Google heard it")),
        text("filename", "Name of the sound"),
        word("mime_type", "Kind of file"),
        integer("size_bytes", "Size in bytes", summed=True),
        blob(),
    ],
    time_field="began_at",
)


class GoogleVoiceSource:
    """Reads the folder Voice of Takeout."""

    connector_key = "googlevoice"
    declaration: Data = declaration(
        "googlevoice",
        "Google Voice",
        "Text messages, calls and voicemails of a Google Voice number.",
        [CHATS, MESSAGES, FILES, CALLS],
    )
    how_to_export = (
        "takeout.google.com, choose Voice (deselect all others if you like), download the zip, "
        "and import it as it is."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim the pages by their classes, and the files beside them by their names."""
        pages = list(matching(export, is_voice_page, ".html", head_bytes=_HEAD_BYTES))
        folders = {PurePosixPath(page.name).parent for page in pages}
        files = [member for member in export.members if folders and _lies_in(member, folders)]
        return claim([*pages, *files], "it holds texts and calls of Google Voice")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each conversation before its messages, each file after its message."""
        from pdpp_sources.google_voice_pages import VoicePages  # noqa: PLC0415 (few have any)

        reading = VoicePages(export)
        pages = export.only(reading.pages)
        return beginning_at(start, without_repeats(each_member(pages, reading.page_items)))


def is_voice_page(head: bytes) -> bool:
    """Whether a page is of Google Voice."""
    return _PAGE.search(head) is not None


def _lies_in(member: ExportMember, folders: set[PurePosixPath]) -> bool:
    path = PurePosixPath(member.name)
    is_beside = path.parent in folders and member.suffix != ".html"
    return is_beside and _BESIDE.fullmatch(path.stem) is not None
