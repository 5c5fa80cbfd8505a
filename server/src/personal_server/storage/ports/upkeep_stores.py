"""What the server asks of a store for itself: keys, clock, backups, layouts that are made anew."""

from __future__ import annotations

from typing import Protocol

from personal_server.domain.stored import Rebuild, SealingKey


class ServerStore(Protocol):
    """What the server keeps for itself."""

    def sealing_keys(self) -> tuple[SealingKey, ...]:
        """All keys, newest first."""
        ...

    def add_sealing_key(self, secret: bytes, now_ns: int) -> SealingKey:
        """Store a new newest key."""
        ...

    def look_at_damage(self) -> None:
        """Forget of the damage that reads met what was healed since."""
        ...


class RebuildStore(Protocol):
    """Work that grows with the records, done in slices while others read and write.

    A declaration, or a newer version of the program, may store a stream another way.  Its records
    stay readable and writable; until it is done, searches find words only where they are indexed.
    """

    def plan_rebuilds(self) -> None:
        """Have everything stored as this version of the program stores it."""
        ...

    def rebuild_slice(self) -> bool:
        """Work for some hundredths of a second; whether more is left."""
        ...

    def merge_slice(self) -> bool:
        """Merge a little of the word indexes written to of late; whether more may be left.

        A word is looked up in every part that an index lies in, a misspelled one in hundreds of
        spellings.
        """
        ...

    def rebuilds(self) -> tuple[Rebuild, ...]:
        """What is under way, by (connection, stream)."""
        ...
