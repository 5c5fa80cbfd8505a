"""The history, bookmarks, downloads and searches that a browser keeps on a computer."""

from __future__ import annotations

from collections.abc import Iterator

from pdpp_kernel.source_item import Data, SourceItem
from pdpp_sources.browser.bookmark_files import bookmark_kind, read_bookmarks
from pdpp_sources.browser.history import is_history, read_history
from pdpp_sources.common.database import (
    DatabaseUnreadable,
    beside,
    is_database,
    opened,
)
from pdpp_sources.common.declaration import (
    StreamForm,
    declaration,
    ending,
    integer,
    key,
    moment,
    names,
    number,
    reference,
    sensitive,
    shared,
    text,
    word,
)
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    without_repeats,
)

VISITS = StreamForm(
    "visits",
    "Web pages you visited",
    "Title, address and time of every visit: health, money, faith, whom you look for. "
    "Addresses may hold words you searched and links that sign somebody in.",
    [
        key(),
        moment("visited_at", "When, in UTC", event=True),
        sensitive(shared(text("title", "Title of the page", title=True))),
        sensitive(text("url", "Address of the page")),
        sensitive(word("host", "Site", searched=True)),
        word("reason", "How the page was reached: link, typed, bookmark, reload …"),
        number("seconds", "How long the page was open, where the browser says it", summed=True),
        reference("from_visit_id", "The visit whose page led here"),
    ],
    time_field="visited_at",
    views={
        "sites": ("Names of sites and times only", ["id", "visited_at", "host"]),
        "times": ("Times at which you were on the web", ["id", "visited_at", "reason", "seconds"]),
    },
    parents={"from_visit": ("visits", "from_visit_id")},
    semantic=["title"],
)

BOOKMARKS = StreamForm(
    "bookmarks",
    "Pages you kept",
    "Title, address and folder of every bookmark.",
    [
        key(),
        moment("added_at", "When it was kept, where the browser says it", event=True),
        text("title", "Your name for it", title=True),
        sensitive(text("url", "Address of the page")),
        word("host", "Site", searched=True),
        word("folder", "The folders it lies in, outermost first", searched=True),
        names("tags", "Your tags for it, in Firefox"),
        text("note", "What is written to it, on a page of bookmarks"),
        moment("modified_at", "When it was last changed"),
    ],
    time_field="added_at",
    semantic=["title"],
)

DOWNLOADS = StreamForm(
    "downloads",
    "Files you downloaded",
    "Name, place and origin of every download; not the files themselves.",
    [
        key(),
        moment("started_at", "When it began, in UTC", event=True),
        text("filename", "Name of the file", title=True),
        sensitive(
            text("path", "Where it was put on your computer, which names your account there")
        ),
        sensitive(text("url", "Where it came from")),
        sensitive(text("referrer", "The page that linked to it")),
        ending(moment("ended_at", "When it ended")),
        word("mime_type", "Kind of file"),
        integer("size_bytes", "Size in bytes", summed=True),
        word("state", "complete, cancelled, interrupted …"),
    ],
    time_field="started_at",
)

SEARCHES = StreamForm(
    "searches",
    "What you searched on the web",
    "The words of every search that the browser noted, with the page of its results.",
    [
        key(),
        moment("searched_at", "When the page of its results was last seen, in UTC", event=True),
        sensitive(text("term", "Words searched", title=True)),
        sensitive(text("url", "Address of the results")),
        word("host", "Site", searched=True),
    ],
    time_field="searched_at",
    semantic=["term"],
)

DECLARATION = declaration(
    "browser",
    "Web browser",
    "History, bookmarks, downloads and searches of a browser on your computer or phone.",
    [VISITS, BOOKMARKS, DOWNLOADS, SEARCHES],
)


class BrowserSource:
    """Reads the databases of Chromium, Firefox and Safari, and bookmarks in every form."""

    connector_key = "browser"
    declaration: Data = DECLARATION
    how_to_export = (
        "Its files, also while it runs (they are copied, and only read). Chrome, Edge, Brave: "
        "History and Bookmarks of the profile folder that chrome://version names. Firefox: "
        "places.sqlite of the folder that about:support names. Safari: History.db and "
        "Bookmarks.plist of ~/Library/Safari. Or the page of HTML that any browser exports its "
        "bookmarks to."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim databases by their tables, and files of bookmarks by how they begin."""
        histories = [m for m in matching(export, is_database) if _is_history(export, m)]
        logs = [log for member in histories for log in beside(export, member)]
        return claim(
            [*histories, *logs, *matching(export, bookmark_kind)],
            "it holds the history or the bookmarks of a browser",
        )

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield what each file holds; what two of them hold is read once."""
        logs = {log.name for member in export.members for log in beside(export, member)}
        files = export.only(member for member in export.members if member.name not in logs)

        def read_member(member: ExportMember) -> Iterator[SourceItem]:
            if is_database(member.head()):
                return read_history(export, member)
            return read_bookmarks(member)

        return beginning_at(start, without_repeats(each_member(files, read_member)))


def _is_history(export: Export, member: ExportMember) -> bool:
    try:
        BOOKMARK.looking_at(member)
        with opened(export, member) as database:
            return is_history(database)
    except (DatabaseUnreadable, BadRecord):
        return False
