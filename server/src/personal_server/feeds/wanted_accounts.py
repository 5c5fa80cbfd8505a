"""An account as its owner asks to have it fed, and what pages ask of whoever signs in to it.

Source: docs/contract/feeds.md 8.1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from pdpp_kernel.unprinted import Unprinted
from personal_server.storage.feed_rows import FeedRow


class WantedAccount(Unprinted, frozen=True, kw_only=True):
    """An account with its password, as typed: what is empty, its provider tells.

    Shapes: `kinds` are those of feeds (`mailbox`, `caldav`, `carddav`); `provider` is an id of
        `mail_providers`, empty where the address tells it; `host` is of the mailbox; `jmap` is an
        address by which mail is fetched over JMAP in the place of IMAP, `token` says that the
        password is an API token.
    """

    address: str
    password: str
    kinds: frozenset[str]
    provider: str = ""
    host: str = ""
    starttls: bool = False
    user: str = ""
    caldav: str = ""
    carddav: str = ""
    jmap: str = ""
    token: bool = False


class SeenFolder(msgspec.Struct, frozen=True):
    """A folder of a mailbox.

    Shapes: `mails` is unknown where the server tells it for one folder at a time only;
        `is_usual` where it is fetched unless the owner chooses.
    """

    name: str
    mails: int | None
    is_usual: bool


class AccountSignUps(Protocol):
    """Signs in to accounts and keeps feeds of them."""

    @property
    def has_keyring(self) -> bool:
        """Whether passwords go into the keyring of this machine, else into a sealed file."""
        ...

    def add(self, wanted: WantedAccount) -> list[FeedRow]:
        """Try the password once, and keep a feed of each kind; that of a mailbox waits for its
        folders to be chosen.

        Raises: InvalidRequest, InvalidState; InvalidState with `feed_code` where the account
            cannot be signed in to.
        """
        ...

    def folders(self, feed: FeedRow) -> list[SeenFolder]:
        """The folders of a mailbox.  Raises: as `add`."""
        ...

    def choose(self, feed: FeedRow, chosen: Sequence[str], deletions: str) -> None:
        """Begin to fetch these folders, or the usual ones.  Raises: InvalidState."""
        ...

    def sign_in_command(self, feed: FeedRow) -> str | None:
        """What signs in again at the provider, behind the name of the program; nothing where a
        password does.
        """
        ...

    def give_password(self, feed: FeedRow, password: str) -> None:
        """Keep a new password, and let the feed go on.

        Raises: InvalidRequest; InvalidState where tokens sign in.
        """
        ...

    def fill(self, feed: FeedRow, account: str) -> None:
        """Let a feed go on into an account, by its id, or a new one, by its name.

        Raises: InvalidRequest, InvalidState.
        """
        ...

    def items(self, feed: FeedRow) -> int:
        """How many items of it were taken so far."""
        ...

    def remove(self, feed: FeedRow) -> None:
        """Forget it with its password; its records stay.  Raises: NotFound."""
        ...


def chosen_folders(ticked: Collection[str], usual: Collection[str]) -> tuple[str, ...]:
    """What a feed keeps of a choice: nothing where it is the usual one, so that new folders come.

    In: INBOX and Sent ticked, usual are the same.  Out: none.
    """
    return () if set(ticked) == set(usual) else tuple(sorted(set(ticked)))
