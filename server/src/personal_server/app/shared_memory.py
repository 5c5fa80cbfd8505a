"""Memory that all processes of one server see: what limits count, what was used once, and what the
processes tell one another.

Rule: nothing here outlives the server, and nothing of a record lies here but the keys of a ranking.
A process that is killed lets go of every lock that it held; what it wrote half is read as nothing.
Layout: a directory of areas, then the areas.  An area is a row of sets, a set eight places; a key
is looked for in one set, and in a full one the place that was put longest ago gives way.
Source: docs/running.md (Several processes).
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
from collections.abc import Hashable
from hashlib import blake2b
from types import TracebackType
from typing import Generic, TypeVar

import msgspec

from pdpp_kernel.system.file_locks import lock_byte, unlock_byte
from pdpp_kernel.system.open_files import unnamed_file
from personal_server.domain.keyed_values import KeyedCounts, KeyedValues

# The layout, for two areas of which the second has 16-byte values and 1,000 sets:
#
#   byte 0           16 KiB                        end
#   ├ directory ─────┼ area "limits" ──┬ area "ids" ─────────────────────────────┤
#   │ msgpack: name  │                 │ set 0 │ set 1 │ …                        │
#   │ → offset, sets │                 └──┬────┘
#                          8 keys of 16 bytes │ 8 turns │ 8 × (length, value)
#
# A key's digest says in which set it lies, so a look-up reads one set, under the lock of its
# area.  A *turn* is the number of the write that put a value: in a full set the lowest turn gives
# way.  So the memory is bounded whatever callers send, and what was put first is forgotten first.
#
# A process may be killed at any instruction.  The value is written first and its key last, and a
# value that was written half does not decode, which reads as nothing; locks are the system's
# (`lockf`), which lets go of them when a process ends.

V = TypeVar("V")
SIZE_BYTES = 192 * 1024 * 1024
"""As much as there may be; a page that nobody wrote takes no memory."""
DIRECTORY_BYTES = 16 * 1024
PLACES = 8
KEY_BYTES = 16
_KEYS_BYTES = PLACES * KEY_BYTES
_TURNS = struct.Struct(f"<{PLACES}Q")
_LENGTH = struct.Struct("<I")
_NO_KEY = bytes(KEY_BYTES)


class _Area(msgspec.Struct, array_like=True, frozen=True):
    """Where values lie.  Units: `offset` in bytes; `lock` is the number of a byte to lock."""

    offset: int
    sets: int
    value_bytes: int
    lock: int

    @property
    def set_bytes(self) -> int:
        return _KEYS_BYTES + _TURNS.size + PLACES * (_LENGTH.size + self.value_bytes)

    @property
    def size_bytes(self) -> int:
        return self.sets * self.set_bytes


class _Directory(msgspec.Struct, array_like=True):
    """What there is so far.  Units: `end` is where the next area begins."""

    areas: dict[str, _Area] = {}
    locks: dict[str, int] = {}
    end: int = DIRECTORY_BYTES


LEADER = 0
"""The seat of the process that does what is done once."""


class Seat(msgspec.Struct, frozen=True):
    """Which of the processes this one is."""

    number: int
    of: int


class SharedLock:
    """Held by one thread of one process; whoever holds it may enter again."""

    def __init__(self, descriptor: int, number: int) -> None:
        self._descriptor = descriptor
        self._number = number
        self._threads = threading.RLock()
        self._depth = 0

    def __enter__(self) -> None:
        self._threads.acquire()
        if not self._depth:
            try:
                lock_byte(self._descriptor, self._number)
            except BaseException:
                self._threads.release()
                raise
        self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._depth -= 1
        try:
            if not self._depth:
                unlock_byte(self._descriptor, self._number)
        finally:
            self._threads.release()


class SharedValues(Generic[V]):
    """As `KeyedValues`, in an area."""

    def __init__(self, memory: mmap.mmap, area: _Area, kind: type[V], lock: SharedLock) -> None:
        self.lock = lock
        self._memory = memory
        self._area = area
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(kind).decode

    def get(self, key: Hashable) -> V | None:
        """The value of a key."""
        digest = _digest(key)
        with self.lock:
            begin = self._set_of(digest)
            slot = self._place_of(begin, digest)
            return None if slot is None else self._value(begin, slot)

    def displaced_by(self, key: Hashable) -> V | None:
        """Only where its set is full."""
        digest = _digest(key)
        with self.lock:
            begin = self._set_of(digest)
            if self._place_of(begin, digest) is not None:
                return None
            if self._place_of(begin, _NO_KEY) is not None:
                return None
            return self._value(begin, self._oldest(begin))

    def put(self, key: Hashable, value: V) -> None:
        """Keep it; what is too long is let go of."""
        try:
            encoded = self._encode(value)
        except UnicodeEncodeError:  # a key of a record may hold half a character
            encoded = bytes(self._area.value_bytes + 1)
        if len(encoded) > self._area.value_bytes:
            self.remove(key)
            return
        digest = _digest(key)
        with self.lock:
            begin = self._set_of(digest)
            slot = self._place_of(begin, digest)
            if slot is None:
                slot = self._place_of(begin, _NO_KEY)
            if slot is None:
                slot = self._oldest(begin)
            self._write(begin, slot, digest, encoded)

    def remove(self, key: Hashable) -> None:
        """Its place is free again."""
        digest = _digest(key)
        with self.lock:
            begin = self._set_of(digest)
            slot = self._place_of(begin, digest)
            if slot is not None:
                at = begin + slot * KEY_BYTES
                self._memory[at : at + KEY_BYTES] = _NO_KEY

    def clear(self) -> None:
        """Free every place that is taken."""
        with self.lock:
            for number in range(self._area.sets):
                begin = self._area.offset + number * self._area.set_bytes
                if any(self._memory[begin : begin + _KEYS_BYTES]):
                    self._memory[begin : begin + _KEYS_BYTES] = bytes(_KEYS_BYTES)

    def _set_of(self, digest: bytes) -> int:
        number = int.from_bytes(digest[:8], "little") % self._area.sets
        return self._area.offset + number * self._area.set_bytes

    def _place_of(self, begin: int, digest: bytes) -> int | None:
        keys = self._memory[begin : begin + _KEYS_BYTES]
        index = keys.find(digest)
        while index > 0 and index % KEY_BYTES:
            index = keys.find(digest, index + 1)
        return None if index < 0 else index // KEY_BYTES

    def _oldest(self, begin: int) -> int:
        turns = _TURNS.unpack_from(self._memory, begin + _KEYS_BYTES)
        return turns.index(min(turns))

    def _value(self, begin: int, slot: int) -> V | None:
        at = self._value_at(begin, slot)
        (length,) = _LENGTH.unpack_from(self._memory, at)
        at += _LENGTH.size
        try:
            return self._decode(self._memory[at : at + length])
        except msgspec.MsgspecError:
            return None

    def _value_at(self, begin: int, slot: int) -> int:
        size = _LENGTH.size + self._area.value_bytes
        return begin + _KEYS_BYTES + _TURNS.size + slot * size

    def _write(self, begin: int, slot: int, digest: bytes, encoded: bytes) -> None:
        memory = self._memory
        turns = list(_TURNS.unpack_from(memory, begin + _KEYS_BYTES))
        turns[slot] = max(turns) + 1
        _TURNS.pack_into(memory, begin + _KEYS_BYTES, *turns)
        at = self._value_at(begin, slot)
        _LENGTH.pack_into(memory, at, len(encoded))
        memory[at + _LENGTH.size : at + _LENGTH.size + len(encoded)] = encoded
        memory[begin + slot * KEY_BYTES : begin + (slot + 1) * KEY_BYTES] = digest


class SharedCounts(msgspec.Struct, frozen=True):
    """As `KeyedCounts`: values of each process, of which this one writes its own."""

    own: KeyedValues[int]
    each: tuple[KeyedValues[int], ...]

    @property
    def lock(self) -> SharedLock:
        """Of their group, so that all of them stand still."""
        lock = self.own.lock
        assert isinstance(lock, SharedLock)  # noqa: S101 (made by the space alone)
        return lock

    def total(self, key: Hashable) -> int:
        """The counts of all processes together, by name."""
        with self.own.lock:
            return sum(values.get(key) or 0 for values in self.each)

    def add(self, key: Hashable, number: int) -> None:
        """So many more here."""
        with self.own.lock:
            count = (self.own.get(key) or 0) + number
            if count:
                self.own.put(key, count)
            else:
                self.own.remove(key)


class SharedMemory:
    """The memory itself: a `ValueSpace` of the process that has this seat.

    Shapes: `descriptor` is what a process that is started has to inherit.
    """

    def __init__(self, descriptor: int, seat: Seat) -> None:
        self.descriptor = descriptor
        self.seat = seat
        self._memory = mmap.mmap(descriptor, SIZE_BYTES)
        self._lock = SharedLock(descriptor, 0)
        self._locks: dict[int, SharedLock] = {}

    @classmethod
    def make(cls, of: int) -> SharedMemory:
        """New memory, empty, for so many processes; the one that makes it has no seat."""
        descriptor = unnamed_file()
        os.ftruncate(descriptor, SIZE_BYTES)
        return cls(descriptor, Seat(-1, of))

    def values(self, name: str, kind: type[V], most: int, size_bytes: int) -> SharedValues[V]:
        """Twice as many places as are asked for, since sets fill unevenly."""
        with self._lock:
            area = self._area(name, -(-2 * most // PLACES), size_bytes)
        lock = self._locks.setdefault(area.lock, SharedLock(self.descriptor, area.lock))
        return SharedValues(self._memory, area, kind, lock)

    def counts(self, name: str, most: int) -> KeyedCounts:
        """One area for each process; what a process counted before it was ended is forgotten."""
        counts = tuple(self._counts_of(name, number, most) for number in range(self.seat.of))
        own = counts[self.seat.number]
        own.clear()
        return SharedCounts(own, counts)

    def forget_counts(self, number: int) -> None:
        """What the process of that seat had under way: it has ended."""
        with self._lock:
            areas = dict(self._directory().areas)
        for name, area in areas.items():
            if name.endswith(_of_seat(number)):
                lock = self._locks.setdefault(area.lock, SharedLock(self.descriptor, area.lock))
                SharedValues(self._memory, area, int, lock).clear()

    def _counts_of(self, name: str, number: int, most: int) -> SharedValues[int]:
        return self.values(name + _of_seat(number), int, most, 9)

    def _area(self, name: str, sets: int, value_bytes: int) -> _Area:
        directory = self._directory()
        known = directory.areas.get(name)
        if known is not None:
            return known
        group = name.partition(".")[0]
        lock = directory.locks.setdefault(group, len(directory.locks) + 1)
        area = _Area(directory.end, sets, value_bytes, lock)
        directory.areas[name] = area
        directory.end += area.size_bytes
        encoded = msgspec.msgpack.encode(directory)
        if directory.end > SIZE_BYTES or len(encoded) + _LENGTH.size > DIRECTORY_BYTES:
            raise MemoryError("the shared memory is too small for what was asked")
        _LENGTH.pack_into(self._memory, 0, len(encoded))
        self._memory[_LENGTH.size : _LENGTH.size + len(encoded)] = encoded
        return area

    def _directory(self) -> _Directory:
        (length,) = _LENGTH.unpack_from(self._memory, 0)
        if not length:
            return _Directory()
        encoded = self._memory[_LENGTH.size : _LENGTH.size + length]
        return msgspec.msgpack.decode(encoded, type=_Directory)


def _of_seat(number: int) -> str:
    return f"@{number}"


def _digest(key: Hashable) -> bytes:
    text = repr(key).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=KEY_BYTES).digest()
