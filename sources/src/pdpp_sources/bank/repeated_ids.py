"""Entries of one file that would share an id: which of them are others, and which is it again."""

from __future__ import annotations

import hashlib

import orjson

from pdpp_kernel.source_item import Data

MOST_IDS = 300_000  # of one file that are remembered; a bank uses one twice in the same month


class Occurrences:
    """Which ids the entries of a file have used, and by what."""

    def __init__(self) -> None:
        self._used: dict[str, list[bytes]] = {}

    def distinct(self, data: Data) -> Data:
        """Another entry of the same id, day and amount gets a number.

        Banks use an id twice; what has no id of the bank's is counted, for two coffees may be
        alike in all that is said of them.
        """
        own: str = data["id"]
        if own not in self._used and len(self._used) >= MOST_IDS:
            return data
        mark = hashlib.sha256(orjson.dumps(data)).digest()[:8]
        same = self._used.setdefault(own, [])
        if mark not in same or data.get("bank_transaction_id", "") is None:
            same.append(mark)
            number = len(same) - 1
        else:
            number = same.index(mark)
        return data | {"id": f"{own}.{number + 1}"} if number else data
