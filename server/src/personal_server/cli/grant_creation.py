"""A grant made at the terminal: what is asked, the review, and where the credential goes.

Rule: what is shown is what is granted; the token goes into the credential cache and nowhere else.
Source: docs/contract/authorization-server.md 15.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pdpp_kernel.values import instant_text
from pdpp_mcp_server.commands.exits import (
    print_json,
)
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.selection_options import Details, SelectionOptions
from pdpp_mcp_server.commands.tables import console, plain, words
from pdpp_mcp_server.rs_client.credential_cache import CredentialCache
from pdpp_mcp_server.rs_client.credentials import CredentialError, Document, credential_document
from personal_server.app.owner_store import OwnerStore
from personal_server.cli.grant_lines import print_review
from personal_server.cli.store import local_acting
from personal_server.collecting.chosen_connection import named_connection
from personal_server.consent.client_registration import local_client_id
from personal_server.consent.selections import parse_selections
from personal_server.granting.local_grants import LocalRequest
from personal_server.granting.reviews import Review
from personal_server.granting.revocations import end_access
from personal_server.granting.tokens import Issued
from personal_server.reading.preview import Evidence, StreamKey

Expiry = Literal["30d", "90d", "1y", "none", "1h", "24h"]


def local_request(
    store: OwnerStore,
    client: str,
    options: SelectionOptions,
    expires: Expiry | None,
    *,
    ai_training: bool,
) -> LocalRequest:
    """What the options ask for.  Raises: CommandError."""
    if options.connection:
        options = replace(options, connection=sorted(connection_ids(store, options.connection)))
    details = options.details(lambda name: source_uri(store, name))
    if details is None:
        raise CommandError(
            "usage",
            "Nothing to grant: name what the app may read.",
            "Name a source with --source NAME, or give a file with a request: --from FILE.",
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


def source_uri(store: OwnerStore, name: str) -> str:
    """The URI of a source by its short name.  Raises: CommandError."""
    if ":" in name:
        return name
    source_ids = {d.connector_key: d.source_id for d in store.catalogs().declarations.values()}
    if name not in source_ids:
        raise CommandError(
            "usage",
            "No records on this server come from a source with that name.",
            (
                "Known sources: "
                f"{', '.join(sorted(source_ids)) or 'none yet; run `pdpp import FILE` first'}."
            ),
        )
    return source_ids[name]


def grant_asked(store: OwnerStore, request: LocalRequest, *, yes: bool) -> Issued:
    """Show the review, ask, and grant.  Raises: CommandError."""
    if not yes and not sys.stdin.isatty():
        raise CommandError(
            "usage",
            "Not running in a terminal, so I cannot ask.",
            "Add --yes to grant the access without a question.",
        )
    review = store.granting.review(request)
    out = words()
    evidence = store.evidence.gather(review.prospective())
    print_review(review, evidence, out)
    _print_empty_limits(store, review, evidence)
    out.print()
    if not yes and not agreed():
        raise CommandError("approval_denied", "Nothing was granted.")
    return store.granting.approve(request, review, local_acting())


def _print_empty_limits(
    store: OwnerStore, review: Review, evidence: Mapping[StreamKey, Evidence]
) -> None:
    """Where limits leave nothing, which values there are."""
    for entry in review.terms.entries:
        for stream in entry.streams:
            offer = entry.offer.stream(stream.name)
            counts = [evidence.get((c, stream.name), Evidence(0)) for c in stream.instance_ids]
            if offer is None or any(
                evidence_count.count or evidence_count.at_least for evidence_count in counts
            ):
                continue
            values = store.evidence.values(stream.instance_ids, offer.stream)
            for limit in stream.only:
                listed = [
                    f"{value.value} ({value.count:,})" for value in values.get(limit.field, ())
                ]
                if listed:
                    words().print(
                        plain(f"    Values of {limit.field} in your records: {', '.join(listed)}")
                    )


def agreed(question: str = "Allow this access?") -> bool:
    """Whether the person at the terminal says yes."""
    words().print(f"{question} [y/N] ", end="", markup=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def credential_kept(
    store: OwnerStore, request: LocalRequest, issued: Issued, cache: CredentialCache
) -> Path:
    """Write the credential; a grant whose credential cannot be kept is ended again."""
    try:
        return cache.save(_document(store, request, issued))
    except (OSError, CredentialError) as error:
        held_id = issued.package_id or issued.grant_id or ""
        with store.authorization.write() as writer:
            end_access(writer, held_id, "not_collected", local_acting(), store.clock())
        code = error.code if isinstance(error, CredentialError) else "config"
        raise CommandError(
            code,
            "The credential file could not be written, so the new grant was revoked.",
            "Choose a directory that you can write to with --cache-root.",
        ) from None


def _document(store: OwnerStore, request: LocalRequest, issued: Issued) -> Document:
    name = request.client_name
    client = {"client_id": local_client_id(name), "client_name": name}
    credential = {
        "access_token": issued.access_token,
        "expires_at": instant_text(issued.expires_at_ns),
        "scope": issued.scope,
        "grant_id": issued.grant_id,
        "grant_package_id": issued.package_id,
        "token_kind": issued.kind,
        "refresh_token": issued.refresh_token,
        "resource": issued.resource,
        "authorization_details": list(issued.details),
    }
    origin, now_ns = request.origin, store.clock()
    return credential_document(origin, origin, "pdpp:read", client, credential, now_ns)


def print_granted(issued: Issued, request: LocalRequest, path: Path, *, as_json: bool) -> None:
    """What was granted, where its credential lies and how it ends."""
    if as_json:
        printed = {
            "kind": issued.kind,
            "grant_id": issued.grant_id,
            "grant_package_id": issued.package_id,
            "grant_ids": list(issued.grant_ids),
            "provider_url": request.origin,
            "cache_path": str(path.resolve()),
        }
        print_json(printed)
        return
    out, held_id = console(), issued.package_id or issued.grant_id
    out.print(f"Granted {held_id}.")
    out.print(f"The app's credential is in {path}.", soft_wrap=True)
    out.print(f"End this access with: pdpp grant revoke {held_id}")


def connection_ids(store: OwnerStore, names: Sequence[str]) -> frozenset[str]:
    """Accounts by their ids, however they were named.  Raises: ConnectionNotFound."""
    connections = store.catalogs().connections
    return frozenset(named_connection(connections, text).connection_id for text in names)
