"""What its owner does about a feed, by the code of what is wrong with it.

Source: docs/contract/feeds.md 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pdpp_kernel.texts import message
from personal_server.feeds.feed_kinds import ACCOUNT_KINDS
from personal_server.feeds.feed_trouble import FeedTrouble, trouble_of
from personal_server.storage.feed_rows import FeedRow

_BY_CODE: Mapping[str, str] = MappingProxyType(
    {
        "folder_gone": message(
            "The folder is missing or empty. Nothing was deleted here. Connect the drive or put"
            " the folder back; the feed continues by itself."
        ),
        "folder_unreadable": message(
            "Let the user that runs the server read the folder, then resume the feed."
        ),
        "folder_too_large": message("Watch a folder with fewer entries."),
        "account_gone": message(
            "The account that this feed filled was erased or blocked. Resume the feed to fill a"
            " new account, or remove the feed."
        ),
        "ambiguous_connection": message(
            "Import the file with `pdpp import --connection ACCOUNT`, then run the feed."
        ),
        "sign_in_refused": message(
            "The server of the account refused the password. It was tried once. Give a new one"
            " with `pdpp feed password`."
        ),
        "sign_in_ended": message(
            "The provider wants you to sign in again: `pdpp feed sign-in`. The feed then goes on"
            " where it was."
        ),
        "provider_unreachable": message(
            "The provider did not renew the sign-in. The feed tries again by itself."
        ),
        "sign_in_missing": message("Give the password with `pdpp feed password`."),
        "certificate_refused": message(
            "The certificate of the server is not valid for its name. Check the name of the"
            " server, then resume the feed."
        ),
        "encryption_refused": message(
            "The mail server did not begin TLS, and got no password. Add the feed again without"
            " --starttls, for the port with TLS, or ask the provider."
        ),
        "mailbox_unreachable": message(
            "The mail server did not answer. The server tries again by itself."
        ),
        "mailbox_misbehaves": message(
            "The mail server gave an answer that makes no sense. The feed tries again by itself."
        ),
        "sign_in_unsupported": message(
            "The server takes no password. Use an address of it that does, or export the account"
            " and watch the folder of the export."
        ),
        "dav_unreachable": message("The server did not answer. The feed tries again by itself."),
        "dav_misbehaves": message(
            "The other server gave an answer that makes no sense. The feed tries again by itself."
        ),
        "dav_not_found": message(
            "No calendars or address books are at this address. Add the feed again with the"
            " address that the provider names for CalDAV or CardDAV."
        ),
        "jmap_not_found": message(
            "No mail is at this address over JMAP. Add the feed again with the address that the"
            " provider names for JMAP."
        ),
        "redirect_refused": message(
            "The server leads to another one, which would get the password. Add the feed again"
            " with the address of that server."
        ),
        "too_large": message("It is too large to be fetched; everything else is fetched."),
        "item_not_given": message("The server lists it, but does not let it be fetched."),
        "item_unread": message(
            "It was imported, and could not be read once more to know its records. The server"
            " fetches it again within a day."
        ),
        "foreign_item": message("It lies outside of the collection that lists it."),
        "mailbox_emptied": message(
            "More than half of the mails are gone from the account. Nothing was deleted here. If"
            " that is right, run the feed with `pdpp feed run`."
        ),
        "folder_emptied": message(
            "More than half of what the folder held is gone. Nothing was deleted here. If that is"
            " right, run the feed with `pdpp feed run`."
        ),
        "account_emptied": message(
            "More than half of what the account held is gone. Nothing was deleted here. If that is"
            " right, run the feed with `pdpp feed run`."
        ),
        "storage_read_only": message(
            "Nothing can be stored here now: the disk is full, or the records may only be read."
            " Make room; the feed then continues by itself."
        ),
        "storage_unavailable": message(
            "The database of this server did not answer. The feed tries again by itself."
        ),
        "import_interrupted": message("The import ended early. The server tries again by itself."),
        "import_too_slow": message(
            "The import took too long and was ended; what it stored by then is kept. The server"
            " tries again by itself, after longer and longer pauses."
        ),
        "export_not_recognized": message("This file is of no kind that can be imported."),
    }
)
UNCLEAR = "ambiguous_connection"
_WHOSE = message(
    "You have accounts that may hold the same records. Choose the one that this feed fills on the"
    " page of the feed, below Sources, or add the feed again with --connection."
)
_OTHERWISE = message("Run `pdpp import` with this file to see why.")
_SILENT = message(
    "Nothing new came for longer than ever before, though every run succeeded. Check that the"
    " account or folder still gets new data."
)

_BY_TROUBLE: Mapping[FeedTrouble | None, str] = MappingProxyType(
    {
        FeedTrouble.SILENT: _SILENT,
        FeedTrouble.SIGN_IN_ENDS: message(
            "The sign-in ends within two days, and no mail comes after that. Sign in again with"
            " `pdpp feed sign-in`."
        ),
    }
)


def what_to_do(code: str) -> str:
    """A sentence that says what to do next."""
    return _BY_CODE.get(code, _OTHERWISE)


def advice(feed: FeedRow) -> str | None:
    """What to do about a feed that failed or is silent; nothing where all is well."""
    if feed.code == UNCLEAR and feed.kind in ACCOUNT_KINDS:
        return _WHOSE
    if feed.code:
        return what_to_do(feed.code)
    return _BY_TROUBLE.get(trouble_of(feed))
