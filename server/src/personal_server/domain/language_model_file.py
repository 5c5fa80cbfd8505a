"""The language model in a file: packed anew once, then read beside the program.

Unpacking what the package has takes a second of a processor and 150 MB for that moment.  Of it
follows a model of 6 MB that says the same: the automaton as the trie that it was made of, and of
each feature the weights in the languages that know it.  That is kept in the folder of compiled
modules, for this version of the package and of this module, and mapped from there: the memory of
the system holds the weights once for all processes.  Where that folder cannot be written to, each
process unpacks for itself.
"""

from __future__ import annotations

import lzma
import mmap
import struct
import sys
import tempfile
import zlib
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from typing import Any

from personal_server.domain.language_names import STEMLESS, STEMMERS

_FORM = 4  # raised where what is kept has to be made anew
_NAME = "language_model"
_NEW = f"{_NAME}.new-"
_FOLDER = Path(cache_from_source(__file__)).parent
_PACKAGE, _PACKED = "py3langid", Path("data", "model.npz.xz")
_NUMBER_BYTES = 4
_AT_ONCE = 2_048  # so many rows are computed with at once
_PIECE_BYTES = 64 * 1024
STEPS = 1 << 9
"""Weights are multiples of a 512th, and few of them apart: 32 bits have room for the sum of all."""
_SUM, _LENGTHS = struct.Struct(">I"), struct.Struct(">10Q")


@dataclass(frozen=True, slots=True)
class KeptModel:
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
    content = unpacked(packed.read_bytes())
    with suppress(OSError):
        keep(content, path)
    return _parsed(memoryview(content))


def _packed() -> Path:
    """Found without its package, which would load what computes with arrays."""
    spec = find_spec(_PACKAGE)
    [folder, *_] = (spec and spec.submodule_search_locations) or [""]
    return Path(folder) / _PACKED


def unpacked(packed: bytes) -> bytes:
    """The model as the package keeps it, of the languages that are told apart, as it is kept here.

    It begins with a sum of all that follows and the lengths of the arrays of `KeptModel`, which
    stand in their order.
    """
    # only what unpacks computes with arrays
    import io  # noqa: PLC0415
    import shutil  # noqa: PLC0415

    import numpy as np  # noqa: PLC0415

    content = io.BytesIO()  # a stretch at a time: the whole never lies in memory twice
    with lzma.open(io.BytesIO(packed)) as arrays:
        shutil.copyfileobj(arrays, content)
    content.seek(0)
    with np.load(content) as model:
        codes: list[str] = model["classes"].tolist()
        columns = _columns_of(codes)
        weights = _weights(np, model["ptc"], columns)
        usual = weights.min(axis=0)  # a language that does not know a feature has no smaller one
        feature_at, column_at = np.nonzero(weights != usual)
        kept = (
            np.array([codes[at] for at in columns], dtype="S2"),
            model["pc"].take(columns).astype(np.float32),
            usual.astype(np.uint32),
            *_trie(np, model["nextmove_row"], model["nextmove"], model["out_feat"]),
            np.searchsorted(feature_at + 1, np.arange(len(weights) + 2)).astype(np.uint32),
            column_at.astype(np.uint8),
            weights[feature_at, column_at],
        )
        return framed([each.tobytes() for each in kept])


def _weights(np: Any, probabilities: Any, columns: Sequence[int]) -> Any:
    """The logarithms of some columns in steps from the smallest on, some rows at a time."""
    weights = np.empty((len(probabilities), len(columns)), np.uint16)
    stretches = [slice(at, at + _AT_ONCE) for at in range(0, len(weights), _AT_ONCE)]
    chosen = (probabilities[rows].take(columns, axis=1) for rows in stretches)
    least = np.float32(min(each.min() for each in chosen))
    for rows in stretches:
        some = probabilities[rows].take(columns, axis=1).astype(np.float32)
        weights[rows] = ((some - least) * STEPS).round()
    return weights


# In:   the automaton of two features, `ab` (0) and `b` (1): its states in any order, each with a
#       row of 256 next states.
# Out:  states level by level: 0 is the first one, 1 is behind `a`, 2 behind `b`, 3 behind `ab`.
#       labels    a b b      behind the label at 0 is the state 1
#       firsts    0 2 3 3 3  the children of 0 have the labels from 0 to 2, those of 1 from 2 to 3
#       fails     0 0 0 2    the longest ending of `ab` that is a state is `b`
#       features  0 0 2 1    one more than the number of the feature
def _trie(np: Any, row_of: Any, next_of: Any, feature_of: Any) -> tuple[Any, Any, Any, Any]:
    """Labels, beginnings, fails and features of the states of an automaton.

    A state lies as deep as the text is long that leads to it from the first one, so that a step to
    a state that was not reached before goes to a child; all other steps are those of its fail.
    """
    steps = next_of.reshape(-1, 1 << 8)
    number = np.full(len(row_of), -1)
    fails, number[0] = np.zeros(len(row_of), np.intp), 0
    levels, labels, counts, reached = [np.zeros(1, np.intp)], list[Any](), list[Any](), 1
    while len(levels[-1]):
        parents = levels[-1]
        found = [
            _children(np, steps[row_of[parents[at : at + _AT_ONCE]]], number, at)
            for at in range(0, len(parents), _AT_ONCE)
        ]
        at, byte, children = map(np.concatenate, zip(*found, strict=True))
        number[children] = np.arange(reached, reached + len(children))
        reached += len(children)
        if len(levels) > 1:
            fails[children] = steps[row_of[fails[parents[at]]], byte]
        labels.append(byte)
        counts.append(np.bincount(at, minlength=len(parents)))
        levels.append(children)
    order = np.concatenate(levels)
    return (
        np.concatenate(labels).astype(np.uint8),
        np.concatenate([[0], *counts]).cumsum().astype(np.uint32),
        number[fails[order]].astype(np.uint32),
        (feature_of[order] + 1).astype(np.uint32),
    )


def _children(np: Any, after: Any, number: Any, begin: int) -> tuple[Any, Any, Any]:
    """Which of some states, from the one at `begin` on, lead by which byte to which new state."""
    at, byte = np.nonzero(number[after] < 0)
    return at + begin, byte, after[at, byte].astype(np.intp)


def framed(arrays: Sequence[bytes]) -> bytes:
    """Their sum, their lengths, and they."""
    summed = b"".join((_LENGTHS.pack(*map(len, arrays)), *arrays))
    return _SUM.pack(zlib.crc32(summed)) + summed


def _columns_of(codes: Sequence[str]) -> list[int]:
    """Those of the languages that are told apart; of some there are two.

    These come first, in the same order as their second columns, which come last.
    """
    first: dict[str, int] = {}
    second: dict[str, int] = {}
    for at, code in enumerate(codes):
        if code in first:
            second[code] = at
        elif code in {*STEMMERS, *STEMLESS.split()}:
            first[code] = at
    doubled = [first.pop(code) for code in second]
    return [*doubled, *first.values(), *second.values()]


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
