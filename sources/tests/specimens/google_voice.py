"""A small export: texts, calls and a voicemail of Google Voice, with something broken in them."""

from __future__ import annotations

from sources.tests.specimens.files import Files

CALLS = "Takeout/Voice/Calls"
BO, CY, MINE = "+15551234567", "+15557654321", "+15550000001"
_HEAD = """<?xml version="1.0" ?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x"><html xmlns="x"><head>
<title>%s</title>
<style type="text/css">body { margin: 0 }</style></head>
<body>"""


def who(number: str, name: str | None) -> str:
    """Somebody with that number, or the owner, who has no name."""
    called = (
        f'<span class="fn">{name}</span>'
        if name is not None
        else '<abbr class="fn" title="">Ich</abbr>'
    )
    return f'<cite class="sender vcard"><a class="tel" href="tel:{number}">{called}</a></cite>'


def said(at: str, author: str, words: str, shown: str = "") -> str:
    """One message; `shown` are its files."""
    time = f'<abbr class="dt" title="2024-01-15T{at}-08:00">Jan 15, 2024</abbr>'
    return f'<div class="message">{time}:\n{author}:\n<q>{words}</q>\n{shown}</div>\n'


def chat(title: str, *messages: str, others: str = "") -> bytes:
    """A page of a conversation; of a group with who the others are."""
    head = f'<div class="participants">Group conversation with:\n{others}</div>' if others else ""
    body = f'<div class="hChatLog hfeed">{head}\n{"".join(messages)}</div>'
    tags = '<div class="tags">Labels:\n<a rel="tag" href="http://x/voice#sms">Text</a></div>'
    return f"{_HEAD % title}{body}{tags}</body></html>".encode()


def call(kind: str, number: str, name: str, at: str, more: str = "") -> bytes:
    """A page of a call."""
    other = f'<a class="tel" href="tel:{number}"><span class="fn">{name}</span></a>'
    inner = (
        f'<span class="fn">Call</span><div class="contributor vcard">With\n{other}</div>'
        f'<abbr class="published" title="2024-01-15T{at}-08:00">Jan 15</abbr>{more}'
        f'<div class="tags"><a rel="tag" href="http://x/voice#{kind}">{kind}</a>, '
        '<a rel="tag" href="http://x/voice#inbox">Inbox</a></div>'
    )
    return f'{_HEAD % "Call"}<div class="haudio">{inner}</div></body></html>'.encode()


_SHOWN = '<div><img src="Bo Adair - Text - 2024-01-15T08_00_00Z-3-1" alt="Image" /></div>'
_LOST = '<div><a class="video" href="Group Conversation - 2024-01-15T09_00_00Z-2-1">Video</a></div>'
_HEARD = (
    '<span class="description"><span class="full-text">The oven is hot.</span></span>'
    '<audio controls="controls" src="Bo Adair - Voicemail - 2024-01-15T10_00_00Z.mp3"></audio>'
    '<abbr class="duration" title="PT1M8S">(00:01:08)</abbr>'
)
FILES: Files = {
    f"{CALLS}/Bo Adair - Text - 2024-01-15T08_00_00Z.html": chat(
        "Me to\nBo Adair",
        said("00:00:00.120", who(MINE, None), "Which &quot;oven&quot;?<br>Stone &amp; warm"),
        said("00:00:05", who(BO, "Bo Adair"), "The stone one."),
        said("00:00:09", who(BO, "Bo Adair"), "MMS Received", _SHOWN),
        said("soon", who(BO, "Bo Adair"), "Bread"),
    ),
    f"{CALLS}/Bo Adair - Text - 2024-01-15T08_00_00Z-3-1.jpg": b"\xff\xd8\xff\xe0 a loaf",
    f"{CALLS}/Bo Adair - Text - 2024-01-16T08_00_00Z.html": chat(
        "Me to\nBo Adair", said("20:00:00", who(MINE, None), "Still warm?")
    ),
    f"{CALLS}/Group Conversation - 2024-01-15T09_00_00Z.html": chat(
        "Group Conversation",
        said("01:00:00", who(CY, "Cy Cook"), "Hello both"),
        said("01:00:01", who(MINE, None), "Look", _LOST),
        others=f"{who(BO, 'Bo Adair')}, {who(CY, 'Cy Cook')}",
    ),
    f"{CALLS}/Bo Adair - Voicemail - 2024-01-15T10_00_00Z.html": call(
        "voicemail", BO, "Bo Adair", "02:00:00", _HEARD
    ),
    f"{CALLS}/Bo Adair - Voicemail - 2024-01-15T10_00_00Z.mp3": b"ID3 heat",
    f"{CALLS}/ - Missed - 2024-01-15T11_00_00Z.html": call("missed", "", "", "03:00:00"),
    f"{CALLS}/Cy Cook - Placed - 2024-01-15T12_00_00Z.html": call(
        "placed", CY, "Cy Cook", "04:00:00", '<abbr class="duration" title="PT2S">2</abbr>'
    ),
    f"{CALLS}/{BO} - 2024-01-17T08_00_00Z.html": chat("Empty"),
}
