"""A small export: a notebook of Evernote, with something broken in it."""

from __future__ import annotations

from base64 import b64encode

from sources.tests.specimens.files import Files

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE en-export SYSTEM "http://xml.evernote.com/pub/evernote-export4.dtd">
<en-export export-date="20240301T000000Z" application="Evernote" version="10.8.5">
"""
ENML = (
    '<![CDATA[<?xml version="1.0" encoding="UTF-8"?>'
    '<!DOCTYPE en-note SYSTEM "http://xml.evernote.com/pub/enml2.dtd">'
    "<en-note>{}</en-note>]]>"
)
_BREAD = ENML.format(
    '<div>Knead &amp; wait</div><div><en-todo checked="true"/>flour</div>'
    '<div><en-todo/>salt</div><a href="https://example.org/oven">oven</a>'
    '<en-crypt hint="x">c2VjcmV0</en-crypt><en-media hash="f8" type="image/png"/>'
)
_LOAF = b64encode(b"loaf").decode()
_NOTES = f"""<note><title>Bread</title><created>20240105T101112Z</created>
<updated>20240106T080000Z</updated><tag>baking</tag><tag>to do</tag>
<note-attributes><author>Ada</author><source-url>https://example.org/</source-url></note-attributes>
<content>{_BREAD}</content>
<resource><data encoding="base64">
{_LOAF}
</data><mime>image/png</mime><resource-attributes><file-name>loaf.png</file-name>\
</resource-attributes></resource>
<resource><mime>application/pdf</mime></resource></note>
<note><title>Never changed</title><content>{ENML.format("once")}</content>
<created>20240107T000000Z</created></note>
<note><title>Never changed</title><content>{ENML.format("twice")}</content>
<created>20240107T000000Z</created></note>
<note></note>
<note><title>Odd</titel></note>
</en-export>
"""
FILES: Files = {"Kitchen.enex": (HEAD + _NOTES).encode()}
