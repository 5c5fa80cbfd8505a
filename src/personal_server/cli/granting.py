"""`pdpp grant`: grants without a browser, on the machine that holds the store.

Rule: what is shown is what is granted; the token goes into the credential cache and nowhere else.
Source: AS contract 15.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Literal

import cyclopts
from cyclopts import Parameter

from personal_server.app.owner_store import OwnerStore
from personal_server.cli.exits import CommandError, print_json
from personal_server.cli.held_access import held_json, print_held, print_held_list
from personal_server.cli.reviews import print_review
from personal_server.cli.selection_options import Details, SelectionOptions
from personal_server.cli.tables import console, words
from personal_server.consent.client_registration import local_client_id
from personal_server.consent.selections import parse_selections
from personal_server.domain.values import instant_text
from personal_server.granting.audit import Acting
from personal_server.granting.holdings import Held, list_held, show_held
from personal_server.granting.local_grants import LocalRequest
from personal_server.granting.revocations import end_access
from personal_server.granting.tokens import Issued
from personal_server.rs_client.credential_cache import CredentialCache
from personal_server.rs_client.credentials import CredentialError, Document

Opener = Callable[[], AbstractContextManager[OwnerStore]]
Expiry = Literal["30d", "90d", "1y", "none", "1h", "24h"]


def granting_app(open_store: Opener, default_cache: Callable[[], Path]) -> cyclopts.App:
    """The command group `pdpp grant`."""
    app = cyclopts.App(name="grant", help="Grant a slice of your records, and end it.")

    @app.command
    def create(
        *,
        client: str,
        selection: SelectionOptions | None = None,
        expires: Expiry | None = None,
        cache_root: Path | None = None,
        ai_training_consent: bool = False,
        yes: bool = False,
        json: bool = False,
    ) -> None:
        """Grant records to a client on this computer and cache its credential.

        Parameters
        ----------
        client
            Who it is for, in your words.
        expires
            When it ends: 30d, 90d (default), 1y or none; for single use 1h or 24h (default).
        cache_root
            Where the credential goes; `.pdpp` in this directory unless set.
        ai_training_consent
            Allow that AI models are trained with the records (only for that purpose).
        yes
            Do not ask.
        json
            Print the result as JSON.
        """
        options = selection or SelectionOptions()
        with open_store() as store:
            asked = _request(store, client, options, expires, ai_training=ai_training_consent)
            issued = _grant(store, asked, yes=yes)
            cache = CredentialCache(cache_root or default_cache(), _warn)
            path = _cached(store, asked, issued, cache)
        _print_granted(issued, asked, path, as_json=json)

    @app.command(name="list")
    def list_(*, all: Annotated[bool, Parameter(negative="")] = False, json: bool = False) -> None:
        """List who may read what, and until when.

        Parameters
        ----------
        all
            Ended ones too.
        json
            Print JSON.
        """
        with open_store() as store, store.authorization.read() as reader:
            held = list_held(reader, store.clock())
        shown = [one for one in held if all or one.status == "active"]
        if json:
            print_json([held_json(one) for one in shown])
        else:
            print_held_list(shown, console())

    @app.command
    def show(id: str, *, json: bool = False) -> None:
        """Show one grant or package.

        Parameters
        ----------
        id
            A grant or package id.
        json
            Print JSON.
        """
        with open_store() as store, store.authorization.read() as reader:
            held = _found(show_held(reader, id, store.clock()))
        if json:
            print_json(held_json(held))
        else:
            print_held(held, console())

    @app.command
    def revoke(id: str, *, json: bool = False) -> None:
        """End a grant or package; the next request finds it closed.

        Parameters
        ----------
        id
            A grant or package id.
        json
            Print JSON.
        """
        with open_store() as store:
            with store.authorization.write() as writer:
                ended = end_access(writer, id, "owner", _acting(), store.clock())
            if ended is None:
                raise _unknown()
            with store.authorization.read() as reader:
                held = _found(show_held(reader, id, store.clock()))
        if json:
            print_json(held_json(held))
        else:
            console().print(f"{held.id} is {held.status}.")

    return app


def _request(
    store: OwnerStore,
    client: str,
    options: SelectionOptions,
    expires: Expiry | None,
    *,
    ai_training: bool,
) -> LocalRequest:
    details = options.details(lambda name: _source_uri(store, name))
    if details is None:
        raise CommandError(
            "usage", "Say what to grant.", "Give --source NAME, or --from FILE with a request."
        )
    return LocalRequest(
        client_name=client,
        origin=store.origin,
        selections=parse_selections(details),
        mode="single_use" if options.single_use or _is_single_use(details) else None,
        expiry=expires,
        ai_training=ai_training,
    )


def _is_single_use(details: Details) -> bool:
    return any(entry.get("access_mode") == "single_use" for entry in details)


def _source_uri(store: OwnerStore, name: str) -> str:
    if ":" in name:
        return name
    known = {d.connector_key: d.source_id for d in store.catalogs().declarations.values()}
    if name not in known:
        raise CommandError(
            "usage",
            "No source of that name has records here.",
            f"Known here: {', '.join(sorted(known)) or 'none yet; run `pdpp import FILE` first'}.",
        )
    return known[name]


def _grant(store: OwnerStore, asked: LocalRequest, *, yes: bool) -> Issued:
    if not yes and not sys.stdin.isatty():
        raise CommandError("usage", "Nobody is here to be asked.", "Add --yes to grant unasked.")
    review = store.granting.preview(asked)
    out = words()
    print_review(review, store.evidence.gather(review.prospective()), out)
    out.print()
    if not yes and not _agreed():
        raise CommandError("approval_denied", "Nothing was granted.")
    return store.granting.approve(asked, review, _acting())


def _agreed() -> bool:
    words().print("Allow this? [y/N] ", end="", markup=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _cached(store: OwnerStore, asked: LocalRequest, issued: Issued, cache: CredentialCache) -> Path:
    """Write the credential; a grant whose credential cannot be kept is ended again."""
    try:
        return cache.save(_document(store, asked, issued))
    except (OSError, CredentialError) as error:
        held_id = issued.package_id or issued.grant_id or ""
        with store.authorization.write() as writer:
            end_access(writer, held_id, "not_collected", _acting(), store.clock())
        code = error.code if isinstance(error, CredentialError) else "config"
        raise CommandError(
            code,
            "The credential could not be written, so the grant was ended again.",
            "Give --cache-root a directory of your own that can be written.",
        ) from None


def _document(store: OwnerStore, asked: LocalRequest, issued: Issued) -> Document:
    now = instant_text(store.clock())
    return {
        "provider_url": asked.origin,
        "authorization_server": asked.origin,
        "issuer": asked.origin,
        "scope": "pdpp:read",
        "client": {
            "client_id": local_client_id(asked.client_name),
            "client_name": asked.client_name,
            "token_endpoint_auth_method": "none",
        },
        "credential": {
            "access_token": issued.access_token,
            "token_type": "Bearer",
            "expires_at": instant_text(issued.expires_at_ns),
            "scope": issued.scope,
            "grant_id": issued.grant_id,
            "grant_package_id": issued.package_id,
            "token_kind": issued.kind,
            "refresh_token": issued.refresh_token,
            "resource": issued.resource,
            "authorization_details": list(issued.details),
        },
        "created_at": now,
        "updated_at": now,
    }


def _print_granted(issued: Issued, asked: LocalRequest, path: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "kind": issued.kind,
                "grant_id": issued.grant_id,
                "grant_package_id": issued.package_id,
                "grant_ids": list(issued.grant_ids),
                "provider_url": asked.origin,
                "cache_path": str(path.resolve()),
            }
        )
        return
    out = console()
    out.print(f"Granted {issued.package_id or issued.grant_id}.")
    out.print(f"Its credential is in {path}.", soft_wrap=True)
    out.print("End it with: pdpp grant revoke " + (issued.package_id or issued.grant_id or ""))


def _found(held: Held | None) -> Held:
    if held is None:
        raise _unknown()
    return held


def _unknown() -> CommandError:
    return CommandError("not_found", "There is no such grant.", "See `pdpp grant list --all`.")


def _acting() -> Acting:
    return Acting("local_cli", user=pwd.getpwuid(os.geteuid()).pw_name)


def _warn(sentence: str) -> None:
    words().print(sentence)
