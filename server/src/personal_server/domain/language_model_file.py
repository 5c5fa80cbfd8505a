"""The language model in a file: packed anew once, then read beside the program.

Unpacking what the package has takes a second of a processor and 150 MB for that moment.  Of it
follows a model of 6 MB that says the same: the automaton as the trie that it was made of, and of
each feature the weights in the languages that know it.  That is kept in the folder of compiled
modules, for this version of the package and of this module, and mapped from there: the memory of
the system holds the weights once for all processes.  Where that folder cannot be written to, each
process unpacks for itself.
"""

from __future__ import annotations

import mmap
import struct
import sys
import tempfile
import zlib
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import cache_from_source, find_spec
from pathlib import Path

import msgspec
from msgspec.structs import replace

from personal_server.domain.language_names import STEMLESS, STEMMERS

_FORM = 4  # raised where what is kept has to be made anew
_NAME = "language_model"
_NEW = f"{_NAME}.new-"
_FOLDER = Path(cache_from_source(__file__)).parent
_PACKAGE, _PACKED = "py3langid", Path("data", "model.npz.xz")
_NUMBER_BYTES = 4
_PIECE_BYTES = 64 * 1024
STEPS = 1 << 9
"""Weights are multiples of a 512th, and few of them apart: 32 bits have room for the sum of all."""
_SUM, _LENGTHS = struct.Struct(">I"), struct.Struct(">10Q")


class KeptModel(msgspec.Struct, frozen=True):
    """The model.

    Shapes: `codes` is the language of each column; states are numbered level by level of the trie,
        the children of each in the order of the bytes that lead to them: those of a state are the
        stretch of `labels` from its place in `firsts` to the next one, and behind the label at a
        place is the state of the next number.  `fails` says of each state which one its longest
        ending is, `features` which feature ends in it, or 0 for none.  A feature has stretches
        (`spans`) of `columns` and of its `values` in these, and what is `usual` in all others;
        `let_go` leaves what was looked up to the memory of the system.
    Units: weights are logarithms in `STEPS`, from the smallest on.
    """

    codes: Sequence[str]
    begins: Sequence[float]
    usual: array[int]
    labels: bytes
    firsts: memoryview
    fails: memoryview
    features: memoryview
    spans: memoryview
    columns: memoryview
    values: memoryview
    let_go: Callable[[], None] = lambda: None

    @property
    def doubled(self) -> int:
        """How many languages have two columns: the first ones, in the order of the last columns."""
        return len(self.codes) - len({*self.codes})

    def weights(self, feature: int) -> int:
        """Of a feature in each column: one number, of which each column has 32 bits, so that adding
        two adds all columns.

        In: a feature with 7 and 9 in two columns, another with 1 and 2.
        Out: 7 + 9 * 2**32 and 1 + 2 * 2**32, where the smallest byte is the first; `columns_of`
        their sum are 8 and 11.
        """
        row, begin, end = self.usual[:], self.spans[feature], self.spans[feature + 1]
        for column, value in zip(self.columns[begin:end], self.values[begin:end], strict=True):
            row[column] = value
        self.let_go()
        return int.from_bytes(row, sys.byteorder)

    def columns_of(self, weights: int) -> list[int]:
        """The sum of weights in each column."""
        content = weights.to_bytes(len(self.codes) * _NUMBER_BYTES, sys.byteorder)
        return memoryview(content).cast("I").tolist()

    def following(self, state: int, byte: int) -> int:
        """The next state."""
        find, firsts, fails = self.labels.find, self.firsts, self.fails
        at = find(byte, firsts[state], firsts[state + 1])
        while at < 0 and state:
            state = fails[state]
            at = find(byte, firsts[state], firsts[state + 1])
        return at + 1


def read_model(folder: Path = _FOLDER) -> KeptModel:
    """From the file in a folder, which is made where it is missing, or else from the package."""
    packed = _packed()
    path = folder / _name_for(packed)
    if (kept := kept_in(path)) is not None:
        return kept
    from personal_server.domain.language_model_package import (  # noqa: PLC0415 (of a new program)
        unpacked,
    )

    content = framed(unpacked(packed.read_bytes(), STEPS))
    with suppress(OSError):
        keep(content, path)
    return _parsed(memoryview(content))


def _packed() -> Path:
    """Found without its package, which would load what computes with arrays."""
    spec = find_spec(_PACKAGE)
    [folder, *_] = (spec and spec.submodule_search_locations) or [""]
    return Path(folder) / _PACKED


def framed(arrays: Sequence[bytes]) -> bytes:
    """The arrays of `KeptModel` as they are kept: a sum of the rest, their lengths, and they."""
    summed = b"".join((_LENGTHS.pack(*map(len, arrays)), *arrays))
    return _SUM.pack(zlib.crc32(summed)) + summed


def _name_for(packed: Path) -> str:
    """What the arrays follow from is in the name of their file."""
    state = packed.stat()
    source = (_FORM, state.st_size, state.st_mtime_ns, sorted(STEMMERS), STEMLESS)
    return f"{_NAME}.{zlib.crc32(repr(source).encode()):08x}"


def keep(content: bytes, path: Path) -> None:
    """Write a file whole, in the place of those of other versions.

    What a process left that was killed here goes, too; one that still writes finds this file
    instead.  Raises: OSError.
    """
    path.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=_NEW, delete=False) as new:
        written = Path(new.name)
        try:
            new.write(content)
            new.flush()
            written.chmod(0o644)
            written.replace(path)
        except BaseException:
            written.unlink(missing_ok=True)
            raise
    for names in (f"{_NAME}.????????", f"{_NEW}*"):
        for other in path.parent.glob(names):
            if other != path:
                other.unlink(missing_ok=True)


def kept_in(path: Path) -> KeptModel | None:
    """What was kept, unless it is missing or damaged."""
    try:
        with path.open("rb") as file:
            (total,) = _SUM.unpack(file.read(_SUM.size))
            found = 0
            while piece := file.read(_PIECE_BYTES):
                found = zlib.crc32(piece, found)
            # its place is taken by another file, and this one never changed
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError, struct.error):
        return None
    if found != total:
        return None
    # each look-up has 128 KiB of it mapped around what it asks for
    let_go = partial(content.madvise, mmap.MADV_DONTNEED)
    return replace(_parsed(memoryview(content)), let_go=let_go)


def _parsed(content: memoryview) -> KeptModel:
    at, parts = _SUM.size + _LENGTHS.size, list[memoryview]()
    for length in _LENGTHS.unpack_from(content, _SUM.size):
        parts.append(content[at : at + length])
        at += length
    codes, begins, usual, labels, firsts, fails, features, spans, columns, values = parts
    return KeptModel(
        [bytes(codes[at : at + 2]).decode() for at in range(0, len(codes), 2)],
        begins.cast("f").tolist(),
        array("I", bytes(usual)),
        bytes(labels),
        firsts.cast("I"),
        fails.cast("I"),
        features.cast("I"),
        spans.cast("I"),
        columns,
        values.cast("H"),
    )
