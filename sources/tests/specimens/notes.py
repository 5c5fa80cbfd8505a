"""A small export: a vault of notes, with something broken in it."""

from __future__ import annotations

from sources.tests.specimens.files import Files, as_json

NOTE = b"""\
---
title: Sourdough
tags: [bread, baking]
created: 2024-01-02
---
# Not the title

Feed it twice, see [[Rye starter|rye]] and ![loaf](images/loaf.png). #kitchen/oven
`#not-a-tag`
"""

FILES: Files = {
    "Vault/Bread/Sourdough.md": NOTE,
    "Vault/Bread/Rye starter.md": b"No front matter\n---\nbut a rule",
    "Vault/Bread/Broken.md": b"---\na: [1\n---\n# Broken front matter",
    "Vault/Bread/images/loaf.png": b"\x89PNG",
}

_BUNDLE = "Backup/Rye.textbundle"
BEAR: Files = {
    f"{_BUNDLE}/text.markdown": b"# Rye\n#kitchen/oven\n\n![](assets/loaf.png)\n",
    f"{_BUNDLE}/assets/loaf.png": b"\x89PNG",
    f"{_BUNDLE}/info.json": as_json(
        {
            "version": 2,
            "creatorIdentifier": "net.shinyfrog.bear",
            "net.shinyfrog.bear": {
                "creationDate": "2024-01-02T08:00:00Z",
                "modificationDate": "2024-02-03T09:10:11Z",
                "uniqueIdentifier": "4A5B",
                "trashed": 0,
                "archived": 0,
            },
        }
    ),
    "Backup/Trash.textbundle/text.markdown": b"# Old note",
    "Backup/Trash.textbundle/info.json": as_json(
        {"net.shinyfrog.bear": {"uniqueIdentifier": "4A5C", "trashed": 1}}
    ),
}
_NOTES = "iCloud Notes/Notes"
APPLE: Files = {
    "iCloud Notes/Notes Details.csv": (
        b"Title, Created On, Modified On, Pinned, Deleted, Drawing/Handwriting, ContentHash\n"
        b"Rye,04-12-2024 09:00:00,04-13-2024 10:11:12,No,No,No,\n"
        b"List,04-12-2024 09:00:00,04-12-2024 09:00:00,No,No,No,\n"
        b"List,04-14-2024 09:00:00,04-14-2024 09:00:00,No,No,No,\n"
        b"Gone,04-12-2024 09:00:00,04-12-2024 09:00:00,No,Yes,No,\n"
    ),
    f"{_NOTES}/Bread/Rye/Rye.txt": "Rye\n\n\t◦\tflour\n\t✓\twater\n\ufffc\n".encode(),
    f"{_NOTES}/Bread/Rye/Attachment.jpeg": b"\xff\xd8\xff",
    f"{_NOTES}/List/List.txt": b"List\nsalt",
    f"{_NOTES}/List/List-1.txt": b"List\nyeast",
    "iCloud Notes/Recently Deleted/Gone/Gone.txt": b"Gone",
}
_PNG = b"iVBORw0KGgo="
PAGES: Files = {
    "Notes/Bread/Rye.html": (
        b"<div><h1>Rye</h1></div>\n<div>Salt <b>last</b> #bread</div>\n<div><br></div>\n<ul>\n"
        b'<li>flour</li>\n</ul>\n<div><img style="width: 100%" src="data:image/png;base64,'
        + _PNG
        + b'"/></div>\n<div><object><a href="attachments/loaf.pdf">loaf.pdf</a></object></div>\n'
    ),
    "Notes/Bread/attachments/loaf.pdf": b"%PDF-1.4",
    "Notes/Old.html": (
        b"<html><head><meta charset='utf-8'></head><body><div><b><span style=\"font-size: 24px\">"
        b"Old</span></b><br></div><div>words</div></body></html>"
    ),
    "Notion/Oven 1d1d.html": (
        b"<html><head><style>" + b"a{}" * 4000 + b"</style></head><body>"
        b'<article id="1d1d1d1d-1d1d-1d1d-1d1d-1d1d1d1d1d1d" class="page sans"><header>'
        b'<h1 class="page-title">Oven</h1></header><div class="page-body"><p>250 degrees</p>'
        b'<figure><img src="Oven%201d1d/oven.png"/></figure></div></article></body></html>'
    ),
    "Notion/Oven 1d1d/oven.png": b"\x89PNG",
}
