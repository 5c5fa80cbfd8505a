"""`pdpp person`: who is who in the owner's records, and the owner's corrections.

Source: docs/contract/resource-server.md 22.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Annotated, cast

import cyclopts
from cyclopts import Parameter

from pdpp_kernel.person_fields import (
    Identity,
    identity_of,
)
from pdpp_kernel.persons import (
    Corrections,
    merged,
    parted,
)
from pdpp_kernel.record import JsonObject
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console, print_facts, table, words
from personal_server.app.owner_store import OwnerStore
from personal_server.cli.kept_data import open_store
from personal_server.cli.store import StoreOpener, make_store
from personal_server.collecting.persons import persons_connection, turn_on
from personal_server.reading.persons import every_person

Flag = Annotated[bool, Parameter(negative="")]
COLUMNS = ("id", "name", "addresses and numbers", "mentions")
SHOWN_IDENTITIES = 3
TURN_ON = "Turn persons on with `pdpp person on`."


def person_app(open_store: StoreOpener, make_store: StoreOpener) -> cyclopts.App:
    """The command group `pdpp person`; `make_store` opens what may be the first of a directory."""
    app = cyclopts.App(
        name="person", help="List the people in your records, and correct who is who."
    )

    @app.command
    def on() -> None:
        """Work out who is who, so that you can grant apps the stream `persons`.

        An app sees only persons that appear in other records of the same grant.
        """
        with make_store() as store:
            _, is_new = turn_on(store.reads.store, store.clock(), store.random_bytes)
        words().print(
            (
                "Persons are on. To include sources that you imported with an older "
                "version, import those sources again."
            )
            if is_new
            else "Persons are already on."
        )

    @app.command
    def off() -> None:
        """Remove the stream `persons`, also from every grant.

        Your merges and separations are kept, in case you turn persons on again.
        """
        with open_store() as store:
            connection = persons_connection(store.reads.store)
            if connection is None:
                raise _off()
            store.reads.store.erase_connection(connection.connection_id, store.clock())
        words().print("Persons are off.")

    @app.command(name="list")
    def list_(sought: str = "", /, *, limit: int = 50, json: Flag = False) -> None:
        """List people, beginning with those that your records mention most.

        Parameters
        ----------
        sought
            Only people with this text in a name, address, number or handle.
        limit
            How many people to list at most.
        json
            Print JSON.
        """
        with open_store() as store:
            persons = [p for p in _persons(store) if _holds(p, sought.casefold())]
        first = list(islice(persons, limit))
        if json:
            print_json(first)
        elif first:
            console().print(table(COLUMNS, map(_line, first)))
            if len(persons) > len(first):
                words().print(f"{len(persons) - len(first):,} more people; --limit shows them.")
        else:
            console().print("No people found.")

    @app.command
    def show(who: str, /, *, json: Flag = False) -> None:
        """Show one person, with the records that mention them.

        Parameters
        ----------
        who
            An address, a number, `network:handle`, or an id as `pdpp person list` shows it.
        json
            Print JSON.
        """
        with open_store() as store:
            person = _one(store, who)
        if json:
            print_json(person)
        else:
            print_facts(_facts(person), console())

    _add_corrections(app, open_store)
    return app


def _add_corrections(app: cyclopts.App, open_store: StoreOpener) -> None:
    @app.command
    def merge(one: str, other: str, /) -> None:
        """Link two addresses, numbers or handles: they belong to the same person.

        Parameters
        ----------
        one
            An address, a number, or `network:handle`.
        other
            Another address, number, or `network:handle`.
        """
        first, second = _identity(one), _identity(other)
        if first == second:
            raise CommandError(
                "usage", "Both addresses are the same.", "Give two addresses that differ."
            )
        with open_store() as store:
            _correct(store, (first, second), lambda corrections: merged(corrections, first, second))
        words().print("Merged: both addresses belong to one person now.")

    @app.command(alias="part")
    def separate(identity: str, /) -> None:
        """Separate an address, number or handle from all others.

        Use this for a number that a family shares, for example. It also undoes your own merges of
        that number.

        Parameters
        ----------
        identity
            An address, a number, or `network:handle`.
        """
        alone = _identity(identity)
        with open_store() as store:
            _correct(store, (alone,), lambda corrections: parted(corrections, alone))
        words().print("Separated: this address is no longer linked to any other.")


def _persons(store: OwnerStore) -> list[JsonObject]:
    if persons_connection(store.reads.store) is None:
        raise _off()
    return list(every_person(store.reads.store, store.declarations))


def _off() -> CommandError:
    return CommandError("not_found", "Persons are off.", TURN_ON)


def _correct(
    store: OwnerStore, identities: Sequence[Identity], change: Callable[[Corrections], Corrections]
) -> None:
    persons = _persons(store)
    if not all(any(_has(person, identity) for person in persons) for identity in identities):
        raise CommandError(
            "not_found",
            "No record mentions this address, number or handle.",
            "`pdpp person list` shows all known addresses.",
        )
    store.reads.store.correct_persons(change)


def _one(store: OwnerStore, name: str) -> JsonObject:
    identity = identity_of(name)
    for person in _persons(store):
        if person["id"] == name or (identity is not None and _has(person, identity)):
            return person
    raise CommandError(
        "not_found",
        "No person has this id or address.",
        "Run `pdpp person list` to see all people.",
    )


def _identity(text: str) -> Identity:
    identity = identity_of(text)
    if identity is None:
        raise CommandError(
            "usage",
            "This is not an address, number or handle.",
            "Write it as name@example.org, +4930123456 or network:name.",
        )
    return identity


def _texts(person: JsonObject, field: str) -> list[str]:
    return cast("list[str]", person[field])


def _identities(person: JsonObject) -> list[str]:
    return [text for field in ("addresses", "numbers", "handles") for text in _texts(person, field)]


def _has(person: JsonObject, identity: Identity) -> bool:
    fields = {"address": "addresses", "number": "numbers", "handle": "handles"}
    return identity.value in _texts(person, fields[identity.kind])


def _holds(person: JsonObject, sought: str) -> bool:
    texts = [str(person["name"] or ""), *_texts(person, "other_names"), *_identities(person)]
    return any(sought in text.casefold() for text in texts)


def _line(person: JsonObject) -> tuple[object, ...]:
    reached = _identities(person)
    more = len(reached) - SHOWN_IDENTITIES
    identities = ", ".join(reached[:SHOWN_IDENTITIES]) + (f" and {more} more" if more > 0 else "")
    return (person["id"], person["name"] or "–", identities, person["mention_count"])


def _facts(person: JsonObject) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [("id", person["id"]), ("name", person["name"] or "–")]
    facts += [("also", name) for name in _texts(person, "other_names")]
    for label, field in (("address", "addresses"), ("number", "numbers"), ("handle", "handles")):
        facts += [(label, text) for text in _texts(person, field)]
    facts.append(("mentions", person["mention_count"]))
    for link in cast("list[dict[str, str]]", person["links"]):
        field = f", {link['field']}" if "field" in link else ""
        facts.append(("record", f"{link['connector_key']} {link['stream']} {link['id']}{field}"))
    return facts


person = person_app(open_store, make_store)
