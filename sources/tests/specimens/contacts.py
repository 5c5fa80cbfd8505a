"""A small export: an address book, with something broken in it."""

from __future__ import annotations

from sources.tests.specimens.files import Files

CONTACTS = b"""\
BEGIN:VCARD
VERSION:2.1
N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=BCrgen;;;
TEL;CELL:+49 30 1234
PHOTO;ENCODING=BASE64;JPEG:/9j/
 4AAQ

NOTE;ENCODING=QUOTED-PRINTABLE:first line=0D=0A=
second line
END:VCARD
BEGIN:VCARD
VERSION:3.0
FN:Ada Lovelace
N:Lovelace;Ada;;;
item1.EMAIL;TYPE=INTERNET:ada@example.org
item1.X-ABLabel:Mine
ORG:Analytical Engines\\, Ltd;Notes
ADR;TYPE=home:;;12 St James's Square;London;;SW1Y;England
BDAY:1815-12-10
CATEGORIES:friends,mathematics
UID:urn:uuid:1
END:VCARD
BEGIN:VCARD
VERSION:4.0
END:VCARD
"""

FILES: Files = {"Contacts/All.vcf": CONTACTS}
