"""`pdpp collector`: tokens for programs that bring records to one connection.

Source: docs/contract/resource-server.md 13.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, cast

import cyclopts
from cyclopts import Parameter
from cyclopts.validators import Number

from pdpp_kernel.errors import InvalidDeclaration
from pdpp_kernel.values import render_instant
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console, table, words
from personal_server.app.owner_store import OwnerStore
from personal_server.cli.kept_data import open_store
from personal_server.cli.store import StoreOpener, local_acting, make_store
from personal_server.collecting.connections import create_connection
from personal_server.collecting.declarations import declare
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.granting.collector_tokens import (
    collector_tokens,
    issue_collector_token,
    revoke_collector_token,
)

FAULTS_TOLD = 5
Flag = Annotated[bool, Parameter(negative="")]


def collector_app(open_store: StoreOpener, make_store: StoreOpener) -> cyclopts.App:
    """The command group `pdpp collector`; `make_store` opens what may be new in a directory."""
    app = cyclopts.App(name="collector", help="Let programs add records to an account.")

    @app.command
    def create(connection: str, /, *, declaration: Path | None = None, json: Flag = False) -> None:
        """Print a token with which a program can add records to one account.

        With this token a program can add records, upload files and store its bookmarks (how far it
        has come), but cannot read records. The token works until you revoke it.

        Parameters
        ----------
        connection
            The account's id or name.
        declaration
            A JSON file that declares the source of the program. An account of it with that name is
            made where there is none.
        json
            Print JSON.
        """
        with open_store() if declaration is None else make_store() as store:
            account = (
                _named(store, connection)
                if declaration is None
                else _declared(store, declaration, connection)
            )
            token = issue_collector_token(
                store.authorization,
                store.origin,
                account.connection_id,
                local_acting(),
                store.random_bytes,
                store.clock(),
            )
        if json:
            print_json({"connection_id": account.connection_id, "token": token})
            return
        words().print("Copy this token now; it is not shown again.")
        console().print(token, soft_wrap=True)

    @app.command(name="list")
    def list_tokens(*, json: Flag = False) -> None:
        """List the tokens of programs that add records (collectors).

        Parameters
        ----------
        json
            Print JSON.
        """
        with open_store() as store:
            names = {c.connection_id: c.display_name or "" for c in _connections(store)}
            tokens = collector_tokens(store.authorization)
        rows = [
            {
                "reference": token.reference,
                "connection_id": token.connection_id,
                "name": names.get(token.connection_id),
                "issued_at": render_instant(token.issued_at_ns),
                "last_used_at": token.last_used_at_ns and render_instant(token.last_used_at_ns),
            }
            for token in tokens
        ]
        if json:
            print_json({"collector_tokens": rows})
        elif rows:
            columns = ("reference", "connection_id", "name", "issued_at", "last_used_at")
            lines = [[str(row[column] or "–") for column in columns] for row in rows]
            console().print(table(columns, lines))
        else:
            console().print(
                "There are no collector tokens. Create one with `pdpp collector create`."
            )

    @app.command
    def rejected(
        connection: str,
        /,
        *,
        limit: Annotated[int, Parameter(validator=Number(gte=1))] = 20,
        json: Flag = False,
    ) -> None:
        """List the newest lines of programs that an account did not accept, and why.

        Parameters
        ----------
        connection
            The account's id or name.
        limit
            How many.
        json
            Print JSON.
        """
        with open_store() as store:
            account = _named(store, connection)
            found = store.reads.store.rejections(account.connection_id, limit, None)
        rows = [
            {
                "at": render_instant(line.at_ns),
                "stream": line.stream,
                "code": line.code,
                "path": line.path,
                "run_id": line.run_id,
                "receipt_id": line.receipt_id,
            }
            for _, line in found
        ]
        if json:
            print_json({"connection_id": account.connection_id, "rejections": rows})
        elif rows:
            columns = ("at", "stream", "code", "path", "run_id")
            lines = [[str(row[column] or "–") for column in columns] for row in rows]
            console().print(table(columns, lines))
        else:
            console().print("No line was rejected.")

    @app.command
    def revoke(reference: str, /) -> None:
        """Revoke a collector's token; the records that it added stay.

        Parameters
        ----------
        reference
            The reference of the token, as `pdpp collector list` shows it.
        """
        with open_store() as store:
            revoke_collector_token(store.authorization, reference, local_acting(), store.clock())
        words().print("The token was revoked. The program can no longer add records.")

    return app


def _connections(store: OwnerStore) -> tuple[Connection, ...]:
    with store.reads.store.snapshot() as snapshot:
        return snapshot.connections()


def _declared(store: OwnerStore, path: Path, name: str) -> Connection:
    """The account of a declared source and that name; made where there is none.

    Raises: CommandError (`usage`) where there is no file or it has errors; DeclarationConflict,
        DeclarationIncompatible.
    """
    try:
        content = path.read_bytes()
    except OSError:
        raise CommandError(
            "usage", "The declaration cannot be read.", "Give a JSON file that you may read."
        ) from None
    now_ns = store.clock()
    try:
        key = declare(store.reads.store, content, now_ns).declaration.connector_key
    except InvalidDeclaration as error:
        faults = cast("list[Mapping[str, str]]", error.members["errors"])
        messages = "; ".join(f"{each['path']}: {each['message']}" for each in faults[:FAULTS_TOLD])
        raise CommandError("usage", "The declaration has errors.", messages) from None
    for each in _connections(store):
        if each.connector_key == key and name in (each.connection_id, each.display_name):
            return each
    with store.reads.store.snapshot() as snapshot:
        declared = {each.connector_key: each for each in snapshot.declarations()}
    return create_connection(store.reads.store, declared.get(key), name, now_ns, store.random_bytes)


def _named(store: OwnerStore, name: str) -> Connection:
    """The connection of that id or name.  Raises: CommandError (`usage`)."""
    usable = [c for c in _connections(store) if c.status is not ConnectionStatus.REVOKED]
    matches = [c for c in usable if name in (c.connection_id, c.display_name)]
    if len(matches) != 1:
        names = ", ".join(
            f"{c.connection_id} ({c.display_name or c.connector_key})" for c in usable
        )
        raise CommandError(
            "usage",
            "Several accounts have that name." if matches else "No account has this id or name.",
            f"Give one of these ids: {names or 'none yet; `pdpp import` creates one'}.",
        )
    return matches[0]


collector = collector_app(open_store, make_store)
