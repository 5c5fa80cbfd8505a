"""Fields that name persons: how a field is declared so, and which identities a value of it has.

Source: docs/contract/resource-server.md 22.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, cast

import msgspec

# The member of a property's schema that says what its values say of persons.
PERSON_MEMBER = "x_pdpp_person"


MAX_NAME_CODE_POINTS = 200
# What is longer was not written for an address or a number; others wrote it.
_MOST_OF_A_FIELD = 1_000
_LONGEST_ENTRY = 1_000
_LONGEST_NUMBER = 64


_ADDRESS = re.compile(r"[^\s@<>(),;:\"]{1,128}@[^\s@<>(),;:\"]{1,253}")
_NUMBER = re.compile(r"\+?[\d\s().\-/\u00a0\u2010-\u2015\u202f]+")
_TRUNK = re.compile(r"\(\s*0\s*\)")
_EXTENSION = re.compile(r"(?i)(;|,|x|ext\.?|extension|#).*$")


class IdentityKind(StrEnum):
    """What an identity is; the order is that in which they stand for a person."""

    ADDRESS = "address"
    NUMBER = "number"
    HANDLE = "handle"


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
    digits = "".join(str(int(digit)) for digit in bare if digit.isdecimal())
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


class PersonField(msgspec.Struct, frozen=True):
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
        neighbour = data.get(self.named_by) if self.named_by else None
        name = shown_name(neighbour) if isinstance(neighbour, str) else None
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
    spec = cast("Mapping[str, object]", raw)
    form, network, named_by = spec.get("form"), spec.get("network"), spec.get("named_by")
    if form not in tuple(PersonForm):
        return None
    # what is written for people holds the name itself
    name_field = named_by if isinstance(named_by, str) and form != PersonForm.WRITTEN else None
    return PersonField(
        name,
        PersonForm(str(form)),
        network if isinstance(network, str) else None,
        name_field,
        spec.get("card") is True,
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
