"""Read what a file says, by what it is: first by its content, then by its name."""

from __future__ import annotations

import re
from collections.abc import Callable

from pdpp_kernel.source_item import FileText, TextState
from pdpp_kernel.system.picture_languages import PICTURES
from pdpp_sources.common.attachments import UNKNOWN_KIND, kind_of
from pdpp_sources.common.html_text import html_to_text
from pdpp_sources.common.text import decoded, printable
from pdpp_sources.file_texts import office, picture_text, rtf
from pdpp_sources.file_texts.calendar_text import read_calendar
from pdpp_sources.file_texts.draft import Draft, EnoughRead, NoText
from pdpp_sources.mail.addresses import shown
from pdpp_sources.mail.message import Headers, MailText, body_of

MOST_LEVELS = 3  # of mails and what is attached to them in each other
_HEAD_BYTES = 8192
_PDF = b"%PDF-"
_PDF_WITHIN = 1024  # so many first bytes its mark stands
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_PAGE = re.compile(rb"\s*(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)
_CALENDAR = re.compile(rb"\s*BEGIN:VCALENDAR\b", re.IGNORECASE)
_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?([\w-]{1,40})""", re.IGNORECASE)
_SCRIPT = re.compile(r"<script\b[^<>]*>", re.IGNORECASE)
_WRITTEN = re.compile(
    r"(?:text|message)/.+|application/(json|xml|x-yaml|yaml|toml|javascript|x-sh|sql|.*\+json)"
)
_MAIL = frozenset({"message/rfc822", "message/global"})
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
# What is said to be one of these and is whole begins as they do, and was read by that.
_KNOWN_BY_CONTENT = frozenset({"application/pdf", *PICTURES})
Reader = Callable[[bytes, Draft], None]


def read_text(content: bytes, mime_type: str | None, filename: str | None) -> FileText:
    """What a file says, and whether that is all of it.

    Shapes: the kind and the name are what others say of it.
    Raises: MemoryError, where it takes more than there is.
    """
    draft, state = Draft(), TextState.READ
    try:
        _read(content, mime_type, filename, draft, MOST_LEVELS)
    except EnoughRead:
        state = TextState.CUT
    except NoText as reason:
        state = reason.state
    except RecursionError:
        state = TextState.TOO_COSTLY
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (libraries raise whatever a damaged file leads to)
        state = TextState.DAMAGED
    text = draft.finished()
    if state is TextState.READ and draft.is_damaged:
        state = TextState.DAMAGED
    if draft.has_unread_pictures and state in (TextState.READ, TextState.NO_WORDS):
        state = TextState.PICTURES_UNREAD
    if state is TextState.READ and not text:
        state = TextState.EMPTY
    return FileText(state, text or None)


def _read(
    content: bytes, mime_type: str | None, filename: str | None, draft: Draft, levels: int
) -> None:
    """Lay the text to the draft. Raises: NoText, EnoughRead."""
    draft.goes_on()
    if not content:
        return
    kind = (mime_type or UNKNOWN_KIND).partition(";")[0].strip().lower()
    kind_by_name = kind_of(filename)
    if kind in (UNKNOWN_KIND, "text/plain", "application/x-unknown") and kind_by_name:
        kind = kind_by_name
    if _by_content(content, kind, draft):
        return
    if kind in _MAIL:
        _read_mail(content, draft, levels)
    elif kind in _PAGES or _PAGE.match(content[:_HEAD_BYTES]):
        draft.add(html_to_text(_page(content)))
    elif kind == "text/calendar" or _CALENDAR.match(content[:_HEAD_BYTES]):
        read_calendar(content, draft)
    else:
        draft.add(_written(content, kind))


def _by_content(content: bytes, kind: str, draft: Draft) -> bool:
    """Whether its first bytes said what it is, and it was read."""
    if _PDF in content[:_PDF_WITHIN] and not _WRITTEN.fullmatch(kind):
        # its library takes a third of a second to load, and most files are no PDF
        from pdpp_sources.file_texts.pdf import read_pdf  # noqa: PLC0415

        read_pdf(content, draft)
    elif picture_text.is_picture(content) and not _WRITTEN.fullmatch(kind):
        picture_text.read_picture(content, draft)
    elif content.startswith(office.MARK):
        office.read_office(content, draft)
    elif content.startswith(rtf.MARK):
        rtf.read_rtf(content, draft)
    elif content.startswith(_OLE):
        # Microsoft wraps an encrypted document of today into a file of yesterday.
        is_new = "openxmlformats" in kind
        raise NoText(TextState.ENCRYPTED if is_new else TextState.OTHER_KIND)
    else:
        return False
    return True


def _written(content: bytes, kind: str) -> str:
    """The content as text. Raises: NoText, if it is none."""
    if kind in _KNOWN_BY_CONTENT:
        raise NoText(TextState.DAMAGED)
    if content.startswith(_WIDE):
        return printable(content.decode("utf-16", "replace"))
    if b"\x00" in content[:_HEAD_BYTES]:
        raise NoText(TextState.OTHER_KIND)
    if _WRITTEN.fullmatch(kind):
        return decoded(content)
    if kind != UNKNOWN_KIND:
        raise NoText(TextState.OTHER_KIND)
    try:
        return printable(content.decode())
    except UnicodeDecodeError:
        raise NoText(TextState.OTHER_KIND) from None


def _page(content: bytes) -> str:
    """A document without its scripts, which hold more markup than it has itself."""
    match = _CHARSET.search(content[:_HEAD_BYTES])
    html = decoded(content, match[1].decode("ascii") if match else None)
    pieces, at = list[str](), 0
    for script in _SCRIPT.finditer(html):
        end = html.find("</script", script.end())
        if script.start() >= at and end >= 0:
            pieces.append(html[at : script.start()])
            at = end
        if end < 0:
            break
    return "".join((*pieces, html[at:]))


def _read_mail(content: bytes, draft: Draft, levels: int) -> None:
    """A message as a person reads it, then the text of what is attached to it."""
    mail = MailText(content)
    headers = Headers(mail.message)
    for name in ("from", "to", "cc"):
        people = ", ".join(shown(headers.addresses(name)))
        draft.add(f"{name.capitalize()}: {people}\n" if people else "")
    for name in ("date", "subject"):
        value = headers.text(name)
        draft.add(f"{name.capitalize()}: {value}\n" if value else "")
    body = body_of(mail, mail.message)
    draft.add(f"\n{body.text}\n")
    for attachment in body.attachments:
        draft.add(f"\nAttached: {attachment.filename or attachment.mime_type}\n")
        if levels:
            try:
                _read(
                    attachment.content, attachment.mime_type, attachment.filename, draft, levels - 1
                )
            except NoText as reason:
                draft.is_damaged |= reason.state is TextState.DAMAGED
        draft.add("\n")
