"""Small exports of every kind, shaped as the platforms' own descriptions say.

They are written by us. Where real files that others made can be had, `test_registry` reads those.
"""

from __future__ import annotations

from sources.tests.specimens import (
    apple_health,
    bank,
    browser,
    calendar,
    chatgpt,
    claude,
    contacts,
    evernote,
    google,
    google_voice,
    imessage,
    kindle,
    mail,
    meta,
    notes,
    phone,
    slack,
    table,
    telegram,
    tracks,
    whatsapp,
)
from sources.tests.specimens.files import Files

SPECIMENS: dict[str, Files] = {
    "mail": mail.FILES,
    "bank": bank.FILES,
    "chatgpt": chatgpt.FILES,
    "claude": claude.FILES,
    "slack": slack.FILES,
    "calendar": calendar.FILES,
    "contacts": contacts.FILES,
    "apple_health": apple_health.FILES,
    "browser": browser.FILES,
    "google": google.FILES,
    "googlevoice": google_voice.FILES,
    "notes": notes.FILES,
    "table": table.FILES,
    "whatsapp": whatsapp.FILES,
    "telegram": telegram.FILES,
    "meta": meta.FILES,
    "phone": phone.FILES,
    "tracks": tracks.FILES,
    "kindle": kindle.FILES,
    "evernote": evernote.FILES,
    "imessage": imessage.FILES,
}
