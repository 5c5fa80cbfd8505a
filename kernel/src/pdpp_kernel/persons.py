"""Persons: which identities in records are of one and the same person.

Rule: an identity is an address, a number or a handle, never a bare name (`person_fields`).  Persons
are a pure function of mentions and of the owner's corrections, so that whoever hands in only the
mentions of records and fields that a client may read gets what that client may know, and nothing
else.
Source: docs/contract/resource-server.md 22.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from pdpp_kernel.person_fields import Identity, IdentityKind

# The connector and the stream of the server's own that persons are read from.
CONNECTOR_KEY = "persons"
STREAM = "persons"

MOST_LINKS = 20
MOST_NAMES = 10
_ID_DIGITS = 24


_ORDER = {kind: rank for rank, kind in enumerate(IdentityKind)}


class Mention(msgspec.Struct, frozen=True):
    """An identity in a field of some records that say it alike.

    Shapes: `key` is one of the records (the first by key), `count` says how many they are; `card`
        is the key of the record where it is about one person, else `None`.
    """

    identity: Identity
    name: str | None
    connector_key: str
    connection_id: str
    stream: str
    field: str
    key: str
    count: int = 1
    card: str | None = None


class Corrections(msgspec.Struct, frozen=True):
    """What the owner said: pairs that are one person, and identities that join nothing else."""

    merged: frozenset[tuple[Identity, Identity]] = frozenset()
    parted: frozenset[Identity] = frozenset()


NO_CORRECTIONS = Corrections()


def merged(corrections: Corrections, one: Identity, other: Identity) -> Corrections:
    """The two are one person."""
    low, high = sorted((one, other), key=_rank)
    return Corrections(corrections.merged | {(low, high)}, corrections.parted)


def parted(corrections: Corrections, identity: Identity) -> Corrections:
    """Nothing joins it to others any more, neither records nor what was merged before."""
    pairs = frozenset(pair for pair in corrections.merged if identity not in pair)
    return Corrections(pairs, corrections.parted | {identity})


class _Group(msgspec.Struct):
    """The mentions of one person."""

    identities: set[Identity] = msgspec.field(default_factory=set[Identity])
    mentions: list[Mention] = msgspec.field(default_factory=list[Mention])


def persons_of(mentions: Iterable[Mention], corrections: Corrections) -> list[dict[str, object]]:
    """The persons that these mentions are of, as records, by key.

    Two identities are one person's where a record about one person has both, or the owner said so.
    Work: proportional to the mentions (but for sorting them).
    """
    identified = list(mentions)
    joined = _Joined({mention.identity for mention in identified})
    first_of: dict[tuple[str, str, str], Identity] = {}
    for mention in identified:
        if mention.card is not None and mention.identity not in corrections.parted:
            card = (mention.connection_id, mention.stream, mention.card)
            joined.join(first_of.setdefault(card, mention.identity), mention.identity)
    for one, other in corrections.merged:
        joined.join(one, other)
    groups: dict[Identity, _Group] = {}
    for mention in identified:
        group = groups.setdefault(joined.root(mention.identity), _Group())
        group.identities.add(mention.identity)
        group.mentions.append(mention)
    return sorted(map(_record, groups.values()), key=lambda record: str(record["id"]))


class _Joined:
    """Sets of identities; what is not among them is not joined to anything."""

    def __init__(self, identities: Iterable[Identity]) -> None:
        self._above = {identity: identity for identity in identities}

    def root(self, identity: Identity) -> Identity:
        """What stands for its set."""
        above = self._above
        while above[identity] != identity:
            above[identity] = above[above[identity]]
            identity = above[identity]
        return identity

    def join(self, one: Identity, other: Identity) -> None:
        """Make one set of two."""
        if one in self._above and other in self._above:
            low, high = self.root(one), self.root(other)
            self._above[high] = low


def person_id(identities: Iterable[Identity]) -> str:
    """The key of a person: a digest of its first identity.

    It stays while others join behind the first.
    """
    first = min(identities, key=_rank)
    digest = hashlib.sha256(f"{first.kind}\0{first.value}".encode()).hexdigest()
    return f"per_{digest[:_ID_DIGITS]}"


def _record(group: _Group) -> dict[str, object]:
    by_kind: dict[IdentityKind, list[str]] = {kind: [] for kind in IdentityKind}
    for identity in sorted(group.identities, key=_rank):
        by_kind[identity.kind].append(identity.value)
    names = _names(group.mentions)
    addresses, numbers, handles = by_kind.values()
    document: dict[str, object] = {
        "id": person_id(group.identities),
        "name": names[0] if names else None,
        "other_names": names[1:],
        "address": addresses[0] if addresses else None,
        "addresses": addresses,
        "number": numbers[0] if numbers else None,
        "numbers": numbers,
        "handles": handles,
        "reachable_at": " ".join((*addresses, *numbers, *handles)),
        "mention_count": sum(mention.count for mention in group.mentions),
        "links": _links(group.mentions),
    }
    return document


def _names(mentions: Iterable[Mention]) -> list[str]:
    """First those of records about the person, then those that stand with most mentions."""
    weights: dict[str, list[int]] = {}
    for mention in mentions:
        if mention.name is not None:
            weight = weights.setdefault(mention.name, [0, 0])
            weight[0] -= mention.count if mention.card is not None else 0
            weight[1] -= mention.count
    return sorted(weights, key=lambda name: (weights[name], name))[: MOST_NAMES + 1]


def _links(mentions: Iterable[Mention]) -> list[dict[str, object]]:
    """Records about the person, then one record of each field that mentions it."""
    rows: dict[tuple[bool, str, str, str, str], tuple[str, str]] = {}
    for mention in mentions:
        is_card = mention.card is not None
        told_by = "" if is_card else mention.field
        row_key = (not is_card, mention.connection_id, mention.stream, told_by, mention.card or "")
        link_key = (mention.key, mention.connector_key)
        rows[row_key] = min(rows.get(row_key, link_key), link_key)
    links: list[dict[str, object]] = []
    for row_key in sorted(rows)[:MOST_LINKS]:
        _, connection_id, stream, told_by, _ = row_key
        key, connector_key = rows[row_key]
        link: dict[str, object] = {
            "connector_key": connector_key,
            "connection_id": connection_id,
            "stream": stream,
            "id": key,
        }
        links.append(link | ({"field": told_by} if told_by else {}))
    return links


def _rank(identity: Identity) -> tuple[int, str]:
    return (_ORDER[identity.kind], identity.value)
