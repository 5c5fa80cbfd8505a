"""A small export: a chat of WhatsApp, with something broken in it."""

from __future__ import annotations

from sources.tests.specimens.files import Files

WHATSAPP = """\
\u200e[13/01/24, 9:05:00\u202fPM] Ada & Ann: \u200eMessages and calls are end-to-end encrypted.
[13/01/24, 9:05:10\u202fPM] Ada: Good evening
on two lines: yes
[13/01/24, 9:06:00\u202fPM] ~\u202fAnn Byron: \u200e<attached: 00000003-PHOTO.jpg>
[13/01/24, 9:06:00\u202fPM] Ada: ok
[13/01/24, 9:06:00\u202fPM] Ada: ok
[2/02/24, 12:00:00\u202fAM] Ada: <Media omitted>
[31/02/24, 12:00:00\u202fAM] Ada: on no day at all
""".encode()

FILES: Files = {
    "WhatsApp Chat - Ada & Ann/_chat.txt": WHATSAPP,
    "WhatsApp Chat - Ada & Ann/00000003-PHOTO.jpg": b"\xff\xd8",
}
