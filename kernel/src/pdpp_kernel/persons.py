"""Persons: what tells people apart in records, and which of it is one and the same person's.

Rule: an identity is an address, a number or a handle, never a bare name.  Persons are a pure
function of mentions and of the owner's corrections, so that whoever hands in only the mentions of
records and fields that a client may read gets what that client may know, and nothing else.
Source: docs/contract/resource-server.md 22.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, cast

# The connector and the stream of the server's own that persons are read from.
CONNECTOR_KEY = "persons"
STREAM = "persons"

# The member of a property's schema that says what its values say of persons.
PERSON_MEMBER = "x_pdpp_person"
MOST_LINKS = 20
MOST_NAMES = 10
MAX_NAME_CODE_POINTS = 200
# What is longer was not written for an address or a number; others wrote it.
_MOST_OF_A_FIELD = 1_000
_LONGEST_ENTRY = 1_000
_LONGEST_NUMBER = 64
_ID_DIGITS = 24
_ADDRESS = re.compile(r"[^\s@<>(),;:\"]{1,128}@[^\s@<>(),;:\"]{1,253}")
_NUMBER = re.compile(r"\+?[\d\s().\-/\u00a0\u2010-\u2015\u202f]+")
_TRUNK = re.compile(r"\(\s*0\s*\)")
_EXTENSION = re.compile(r"(?i)(;|,|x|ext\.?|extension|#).*$")


class IdentityKind(StrEnum):
    """What an identity is; the order is that in which they stand for a person."""

    ADDRESS = "address"
    NUMBER = "number"
    HANDLE = "handle"


_ORDER = {kind: place for place, kind in enumerate(IdentityKind)}


class Identity(NamedTuple):
    """One normalized address, number or handle; that of a handle begins with its network."""

    kind: IdentityKind
    value: str


def address_of(text: str) -> Identity | None:
    """An e-mail address in lower case, without `mailto:`."""
    bare = text.strip()
    if bare[:7].lower() == "mailto:":
        bare = bare[7:].partition("?")[0]
    if not _ADDRESS.fullmatch(bare):
        return None
    return Identity(IdentityKind.ADDRESS, bare.lower())


def number_of(text: str) -> Identity | None:
    """A telephone number: `+` and digits, or the digits of one without a country.

    Extensions do not count.  The two forms are never taken for each other, since a number without a
    country is another one in every country.
    """
    bare = text.strip()
    if len(bare) > _LONGEST_NUMBER:
        return None
    if bare[:4].lower() == "tel:":
        bare = bare[4:]
    bare = _EXTENSION.sub("", bare)
    if not _NUMBER.fullmatch(bare):
        return None
    is_international = bare.lstrip().startswith("+")
    if is_international:
        bare = _TRUNK.sub("", bare)
    digits = "".join(str(int(each)) for each in bare if each.isdecimal())
    if not is_international and digits.startswith("00"):
        is_international, digits = True, digits[2:]
    if not 7 <= len(digits) <= 15:
        return None
    return Identity(IdentityKind.NUMBER, f"+{digits}" if is_international else digits)


def handle_of(text: str, network: str | None) -> Identity | None:
    """A name or id within a network; without one the text names it, as in `skype: ada`."""
    bare = text.strip()
    if network is None:
        network, _, bare = (part.strip() for part in bare.partition(":"))
    if not network or not bare or len(bare) > 256 or len(network) > 64:
        return None
    return Identity(IdentityKind.HANDLE, f"{network.casefold()}:{bare.casefold()}")


def identity_of(text: str) -> Identity | None:
    """What the owner writes for an identity: an address, a number, or `network:handle`."""
    return address_of(text) or number_of(text) or handle_of(text, None)


class PersonForm(StrEnum):
    """How a field is written: `written` is for people, such as `Ada <ada@example.org>`."""

    ADDRESS = "address"
    NUMBER = "number"
    HANDLE = "handle"
    WRITTEN = "written"


@dataclass(frozen=True, slots=True)
class PersonField:
    """A field whose value, or each entry of it, names a person (`x_pdpp_person`).

    Shapes: `network` is that of a handle; `named_by` is the field that holds the person's name;
        `is_card`: the record is about one person, and all such fields of it are that person's.
    """

    field: str
    form: PersonForm
    network: str | None = None
    named_by: str | None = None
    is_card: bool = False

    def read(self, data: Mapping[str, object]) -> Iterator[tuple[Identity, str | None]]:
        """The identities that a record has in this field, and the name that stands with each."""
        value = data.get(self.field)
        texts = cast("Sequence[object]", value) if isinstance(value, list | tuple) else (value,)
        beside = data.get(self.named_by) if self.named_by else None
        name = shown_name(beside) if isinstance(beside, str) else None
        for text in texts[:_MOST_OF_A_FIELD]:
            if isinstance(text, str) and len(text) <= _LONGEST_ENTRY:
                identity, own = self._entry(text)
                if identity is not None:
                    yield identity, own or name

    def _entry(self, text: str) -> tuple[Identity | None, str | None]:
        match self.form:
            case PersonForm.ADDRESS:
                return address_of(text), None
            case PersonForm.NUMBER:
                return number_of(text), None
            case PersonForm.HANDLE:
                return handle_of(text, self.network), None
            case PersonForm.WRITTEN:
                return _written(text)


def person_field(name: str, schema: Mapping[str, object]) -> PersonField | None:
    """What a property's schema says of persons; anything that is not understood says nothing."""
    raw = schema.get(PERSON_MEMBER)
    if not isinstance(raw, Mapping):
        return None
    said = cast("Mapping[str, object]", raw)
    form, network, named_by = said.get("form"), said.get("network"), said.get("named_by")
    if form not in tuple(PersonForm):
        return None
    # what is written for people holds the name itself
    beside = named_by if isinstance(named_by, str) and form != PersonForm.WRITTEN else None
    return PersonField(
        name,
        PersonForm(str(form)),
        network if isinstance(network, str) else None,
        beside,
        said.get("card") is True,
    )


@lru_cache(maxsize=4_096)
def _written(text: str) -> tuple[Identity | None, str | None]:
    before, opens, inner = text.rstrip().removesuffix(">").rpartition("<")
    if not opens:
        return address_of(text) or number_of(text), None
    return address_of(inner) or number_of(inner), shown_name(before.strip("\"' "))


def shown_name(text: str) -> str | None:
    """A name on one line, `None` for what is none: nothing, an address or a number."""
    name = " ".join(text.split())[:MAX_NAME_CODE_POINTS]
    return name if name and _is_name(name) else None


@lru_cache(maxsize=4_096)
def _is_name(name: str) -> bool:
    return address_of(name) is None and number_of(name) is None


@dataclass(frozen=True, slots=True)
class Mention:
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


@dataclass(frozen=True, slots=True)
class Corrections:
    """What the owner said: pairs that are one person, and identities that join nothing else."""

    merged: frozenset[tuple[Identity, Identity]] = frozenset()
    parted: frozenset[Identity] = frozenset()


NO_CORRECTIONS = Corrections()


def merged(known: Corrections, one: Identity, other: Identity) -> Corrections:
    """The two are one person."""
    low, high = sorted((one, other), key=_rank)
    return Corrections(known.merged | {(low, high)}, known.parted)


def parted(known: Corrections, identity: Identity) -> Corrections:
    """Nothing joins it to others any more, neither records nor what was merged before."""
    kept = frozenset(pair for pair in known.merged if identity not in pair)
    return Corrections(kept, known.parted | {identity})


@dataclass(slots=True)
class _Group:
    """The mentions of one person."""

    identities: set[Identity] = field(default_factory=set[Identity])
    mentions: list[Mention] = field(default_factory=list[Mention])


def persons_of(mentions: Iterable[Mention], corrections: Corrections) -> list[dict[str, object]]:
    """The persons that these mentions are of, as records, by key.

    Two identities are one person's where a record about one person has both, or the owner said so.
    Work: proportional to the mentions (but for sorting them).
    """
    seen = list(mentions)
    joined = _Joined({each.identity for each in seen})
    first_of: dict[tuple[str, str, str], Identity] = {}
    for each in seen:
        if each.card is not None and each.identity not in corrections.parted:
            place = (each.connection_id, each.stream, each.card)
            joined.join(first_of.setdefault(place, each.identity), each.identity)
    for one, other in corrections.merged:
        joined.join(one, other)
    groups: dict[Identity, _Group] = {}
    for each in seen:
        group = groups.setdefault(joined.root(each.identity), _Group())
        group.identities.add(each.identity)
        group.mentions.append(each)
    return sorted(map(_record, groups.values()), key=lambda record: str(record["id"]))


class _Joined:
    """Sets of identities; what is not among them is not joined to anything."""

    def __init__(self, known: Iterable[Identity]) -> None:
        self._above = {each: each for each in known}

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
    found: dict[str, object] = {
        "id": person_id(group.identities),
        "name": names[0] if names else None,
        "other_names": names[1:],
        "address": addresses[0] if addresses else None,
        "addresses": addresses,
        "number": numbers[0] if numbers else None,
        "numbers": numbers,
        "handles": handles,
        "reachable_at": " ".join((*addresses, *numbers, *handles)),
        "mention_count": sum(each.count for each in group.mentions),
        "links": _links(group.mentions),
    }
    return found


def _names(mentions: Iterable[Mention]) -> list[str]:
    """First those of records about the person, then those that stand with most mentions."""
    weights: dict[str, list[int]] = {}
    for each in mentions:
        if each.name is not None:
            weight = weights.setdefault(each.name, [0, 0])
            weight[0] -= each.count if each.card is not None else 0
            weight[1] -= each.count
    return sorted(weights, key=lambda name: (weights[name], name))[: MOST_NAMES + 1]


def _links(mentions: Iterable[Mention]) -> list[dict[str, object]]:
    """Records about the person, then one record of each field that mentions it."""
    places: dict[tuple[bool, str, str, str, str], tuple[str, str]] = {}
    for each in mentions:
        is_card = each.card is not None
        told_by = "" if is_card else each.field
        place = (not is_card, each.connection_id, each.stream, told_by, each.card or "")
        found = (each.key, each.connector_key)
        places[place] = min(places.get(place, found), found)
    links: list[dict[str, object]] = []
    for place in sorted(places)[:MOST_LINKS]:
        _, connection_id, stream, told_by, _ = place
        key, connector_key = places[place]
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
