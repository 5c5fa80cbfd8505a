"""The language model as its package has it, packed anew as `language_model_file` keeps it.

It is imported once by a new program; only this computes with the arrays of the package.
"""

from __future__ import annotations

import io
import lzma
import shutil
from collections.abc import Sequence
from typing import Any

import numpy as np

from personal_server.domain.language_names import STEMLESS, STEMMERS

_AT_ONCE = 2_048  # so many rows are computed with at once


def unpacked(packed: bytes, steps: int) -> list[bytes]:
    """The model as the package keeps it, of the languages that are told apart: the arrays of
    `KeptModel` in their order, weights in so many steps for each unit of a logarithm.
    """
    content = io.BytesIO()  # a stretch at a time: the whole never lies in memory twice
    with lzma.open(io.BytesIO(packed)) as arrays:
        shutil.copyfileobj(arrays, content)
    content.seek(0)
    with np.load(content) as model:
        codes: list[str] = model["classes"].tolist()
        columns = _columns_of(codes)
        weights = _weights(model["ptc"], columns, steps)
        usual = weights.min(axis=0)  # a language that does not know a feature has no smaller one
        feature_at, column_at = np.nonzero(weights != usual)
        kept = (
            np.array([codes[at] for at in columns], dtype="S2"),
            model["pc"].take(columns).astype(np.float32),
            usual.astype(np.uint32),
            *_trie(model["nextmove_row"], model["nextmove"], model["out_feat"]),
            np.searchsorted(feature_at + 1, np.arange(len(weights) + 2)).astype(np.uint32),
            column_at.astype(np.uint8),
            weights[feature_at, column_at],
        )
        return [each.tobytes() for each in kept]


def _weights(probabilities: Any, columns: Sequence[int], steps: int) -> Any:
    """The logarithms of some columns in steps from the smallest on, some rows at a time."""
    weights = np.empty((len(probabilities), len(columns)), np.uint16)
    stretches = [slice(at, at + _AT_ONCE) for at in range(0, len(weights), _AT_ONCE)]
    chosen = (probabilities[rows].take(columns, axis=1) for rows in stretches)
    least = np.float32(min(each.min() for each in chosen))
    for rows in stretches:
        some = probabilities[rows].take(columns, axis=1).astype(np.float32)
        weights[rows] = ((some - least) * steps).round()
    return weights


# In:   the automaton of two features, `ab` (0) and `b` (1): its states in any order, each with a
#       row of 256 next states.
# Out:  states level by level: 0 is the first one, 1 is behind `a`, 2 behind `b`, 3 behind `ab`.
#       labels    a b b      behind the label at 0 is the state 1
#       firsts    0 2 3 3 3  the children of 0 have the labels from 0 to 2, those of 1 from 2 to 3
#       fails     0 0 0 2    the longest ending of `ab` that is a state is `b`
#       features  0 0 2 1    one more than the number of the feature
def _trie(row_of: Any, next_of: Any, feature_of: Any) -> tuple[Any, Any, Any, Any]:
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
            _children(steps[row_of[parents[at : at + _AT_ONCE]]], number, at)
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


def _children(after: Any, number: Any, begin: int) -> tuple[Any, Any, Any]:
    """Which of some states, from the one at `begin` on, lead by which byte to which new state."""
    at, byte = np.nonzero(number[after] < 0)
    return at + begin, byte, after[at, byte].astype(np.intp)


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
