"""`pdpp grant`: grants without a browser, on the machine that holds the store.

Rule: what is shown is what is granted; the token goes into the credential cache and nowhere else.
Source: docs/contract/authorization-server.md 15.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import cyclopts
from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.text import Text

from pdpp_kernel.result_size import MOST_RESULT_CHARS, RESULT_CHARS
from pdpp_kernel.texts import Joined, counted
from pdpp_kernel.values import instant_text
from pdpp_mcp_server.commands.exits import (
    default_cache,
    print_json,
)
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.selection_options import Details, SelectionOptions
from pdpp_mcp_server.commands.tables import console, day, minute, plain, print_facts, table, words
from pdpp_mcp_server.rs_client.credential_cache import CredentialCache
from pdpp_mcp_server.rs_client.credentials import CredentialError, Document, credential_document
from personal_server.app.owner_store import OwnerStore
from personal_server.cli.kept_data import open_store
from personal_server.cli.store import StoreOpener, local_acting
from personal_server.collecting.chosen_connection import named_connection
from personal_server.consent.client_registration import local_client_id
from personal_server.consent.narrowings import Narrowing
from personal_server.consent.selections import parse_selections
from personal_server.consent.terms import EntryTerms
from personal_server.consent.unusual_reading import said_of
from personal_server.delivery.subscription_states import pause_all
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.grant import ContentLimit, StreamGrant, render_stream_grant
from personal_server.granting.grant_successors import rename_access
from personal_server.granting.holdings import (
    HeldGrant,
    Holding,
    current_id,
    list_held,
    show_held,
    token_binding,
)
from personal_server.granting.local_grants import LocalChange, LocalRequest
from personal_server.granting.pauses import pause_access, resume_access
from personal_server.granting.reading_alarms import (
    ReadingFigures,
    dismiss_alarms,
    limit_reading,
    limit_words,
    open_alarms,
    reading_figures,
)
from personal_server.granting.reviews import Review
from personal_server.granting.revocations import end_access
from personal_server.granting.tokens import Issued
from personal_server.reading.preview import Evidence, StreamKey
from personal_server.storage.ports.authorization_store import AuthorizationReader, HeldQuery

Expiry = Literal["30d", "90d", "1y", "none", "1h", "24h"]
LINES = 50
# Values of a limit that a line names.
SHOWN_VALUES = 12
COLUMNS = ("id", "client", "until", "last used", "streams")


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOptions:
    """What the grant keeps.

    Parameters
    ----------
    source
        Only this source of a package, by URI or short name. Repeatable.
    stream
        Only this stream, perhaps only with these fields: `messages` or `messages:id,subject`.
        Repeatable.
    connection
        Only this account of its source, by connection id. Repeatable.
    since
        Only records from this time on: `2026-08-01`, or a time with offset.
    until
        Only records before this time.
    expires
        When the access ends, counted from now, if that is sooner: 30d, 90d, 1y; for one-time access
        1h, 24h.
    """

    source: list[str] | None = None
    stream: list[str] | None = None
    connection: list[str] | None = None
    since: str = ""
    until: str = ""
    expires: Expiry | None = None

    def narrowing(self, store: OwnerStore) -> Narrowing:
        """The same by ids.  Raises: CommandError, ConnectionNotFound."""
        sources, streams, connections = self.source, self.stream, self.connection
        return Narrowing(
            sources=None if not sources else frozenset(_source_uri(store, s) for s in sources),
            streams=None if not streams else dict(map(_named_stream, streams)),
            connections=None if not connections else _connection_ids(store, connections),
            since=self.since,
            until=self.until,
            expiry=self.expires,
        )


def _named_stream(text: str) -> tuple[str, frozenset[str] | None]:
    name, _, fields = text.partition(":")
    field_names = frozenset(field.strip() for field in fields.split(",") if field.strip())
    return name, field_names or None


def granting_app(open_store: StoreOpener, default_cache: Callable[[], Path]) -> cyclopts.App:
    """The command group `pdpp grant`."""
    app = cyclopts.App(
        name="grant", help="Give apps access to some of your records, and end access."
    )

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
        """Grant an app on this computer access to records, and save its credential.

        Parameters
        ----------
        client
            A name for the app, in your words.
        expires
            How long the access lasts: 30d, 90d (default), 1y or none; for one-time access 1h or 24h
            (default).
        cache_root
            The folder in which to save the credential. Default: `.pdpp` in this directory.
        ai_training_consent
            Also allow training AI models with the records.
        yes
            Do not ask for confirmation.
        json
            Print the result as JSON.
        """
        options = selection or SelectionOptions()
        with open_store() as store:
            request = _request(store, client, options, expires, ai_training=ai_training_consent)
            issued = _grant(store, request, yes=yes)
            cache = CredentialCache(cache_root or default_cache(), words().print)
            path = _cached(store, request, issued, cache)
        _print_granted(issued, request, path, as_json=json)

    @app.command(name="list")
    def list_(
        *,
        all: Annotated[bool, Parameter(negative="")] = False,
        limit: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
        before: str | None = None,
        json: bool = False,
    ) -> None:
        """List which apps may read what, and until when, newest first.

        Parameters
        ----------
        all
            Include grants that have ended.
        limit
            How many grants to list. Default: 50; with --json all.
        before
            List grants older than the grant or package with this id.
        json
            Print JSON.
        """
        with open_store() as store, store.authorization.read() as reader:
            now_ns = store.clock()
            query = HeldQuery(now_ns, lasts=None if all else True)
            below = None if before is None else _found(show_held(reader, before, now_ns)).place
            most = limit if json else limit or LINES
            holdings = list_held(reader, query, None if most is None else most + 1, below)
            alarms = {row.held_id for row in open_alarms(reader)}
        first = holdings[:most]
        if json:
            print_json([_held_json(holding) for holding in first])
        else:
            _print_held_list(first, alarms, console())
        if len(holdings) > len(first):
            words().print(f"There are more grants. List them with --before {first[-1].id}.")

    @app.command
    def show(id: str, *, json: bool = False) -> None:
        """Show one grant, or one package (several grants approved in one decision).

        Parameters
        ----------
        id
            The id of a grant, or of a package (several grants approved in one decision).
        json
            Print JSON.
        """
        with open_store() as store, store.authorization.read() as reader:
            _current(reader, id, store.clock())
            holding, figures, binding = _shown(reader, id, store.clock())
        if json:
            print_json({**_held_json(holding), "token_binding": binding, **_figures_json(figures)})
        else:
            _print_held(holding, binding, figures, console())

    for add in (_add_ends, _add_changes, _add_pauses, _add_limits, _add_receipts):
        add(app, open_store)
    return app


def _add_ends(app: cyclopts.App, open_store: StoreOpener) -> None:
    """End grants."""

    @app.command
    def revoke(id: str, *, json: bool = False) -> None:
        """End a grant or package; the app's next request is refused.

        Parameters
        ----------
        id
            The id of a grant, or of a package (several grants approved in one decision).
        json
            Print JSON.
        """
        with open_store() as store:
            with store.authorization.write() as writer:
                held_id = _current(writer, id, store.clock())
                ended = end_access(writer, held_id, "owner", local_acting(), store.clock())
            if ended is None:
                raise _unknown()
            with store.authorization.read() as reader:
                holding = _found(show_held(reader, held_id, store.clock()))
        if json:
            print_json(_held_json(holding))
        else:
            console().print(f"{holding.id} is {holding.status}.")


def _add_receipts(app: cyclopts.App, open_store: StoreOpener) -> None:
    @app.command
    def receipt(id: str, *, json: bool = False) -> None:
        """Print the signed receipt of a grant or package.

        The app gets the same receipt. It contains a fingerprint (a salted digest) of what you were
        shown when you approved. --json prints that text and the salt, the random bytes that went
        into the fingerprint, so that you can prove what you saw.

        Parameters
        ----------
        id
            The id of a grant, or of a package (several grants approved in one decision).
        json
            Print JSON.
        """
        with open_store() as store, store.authorization.read() as reader:
            _current(reader, id, store.clock())
            issued = store.receipts.of(reader, id, store.clock())
        if issued is None:
            raise _unknown()
        if json:
            review_text = issued.shown.decode()
            print_json({"receipt": issued.signed, "salt": issued.salt.hex(), "shown": review_text})
        else:
            console().print(issued.signed, soft_wrap=True)


def _add_changes(app: cyclopts.App, open_store: StoreOpener) -> None:
    """Narrow a grant, end it sooner, or rename it."""

    @app.command
    def change(
        id: str, *, options: ChangeOptions | None = None, yes: bool = False, json: bool = False
    ) -> None:
        """Narrow a grant or package, or end it sooner. What you do not name stays unchanged.

        The app keeps its token and sees only what remains. The changed grant has a new id. To
        allow more, or for longer, use the owner's page of this access.

        Parameters
        ----------
        id
            The id of a grant, or of a package (several grants approved in one decision).
        yes
            Do not ask for confirmation.
        json
            Print the result as JSON.
        """
        if options is None or options == ChangeOptions():
            usage = "See `pdpp grant change --help`."
            raise CommandError("usage", "Nothing to change: name what should remain.", usage)
        if not yes and not sys.stdin.isatty():
            raise CommandError(
                "usage",
                "Not running in a terminal, so I cannot ask.",
                "Add --yes to change the grant without a question.",
            )
        with open_store() as store:
            request = LocalChange(id, options.narrowing(store))
            review = store.granting.preview_change(request)
            out = words()
            _print_review(review, store.evidence.gather(review.prospective()), out)
            out.print()
            if not yes and not _agreed("Change the grant to this?"):
                raise CommandError("approval_denied", "Nothing was changed.")
            ids = store.granting.change(request, review, local_acting())
            with store.authorization.read() as reader:
                held_id = ids.package_id or ids.grant_id or ""
                holding = _found(show_held(reader, held_id, store.clock()))
        if json:
            print_json(_held_json(holding))
        else:
            console().print(f"The grant was changed: {holding.id} replaces {holding.replaces}.")

    @app.command
    def rename(id: str, name: str = "") -> None:
        """Give a grant or package a name of your own; only you see it.

        Parameters
        ----------
        id
            The id of a grant, or of a package (several grants approved in one decision).
        name
            The new name. Leave it out to use the app's own name.
        """
        with open_store() as store, store.authorization.write() as writer:
            held_id = _current(writer, id, store.clock())
            if not rename_access(writer, held_id, name, local_acting(), store.clock()):
                raise _unknown()
            holding = _found(show_held(writer, held_id, store.clock()))
        words().print(Text(f"Renamed {held_id} to {holding.title}."))


def _connection_ids(store: OwnerStore, names: Sequence[str]) -> frozenset[str]:
    connections = store.catalogs().connections
    return frozenset(named_connection(connections, text).connection_id for text in names)


def _add_pauses(app: cyclopts.App, open_store: StoreOpener) -> None:
    """Pause and resume grants."""

    @app.command
    def pause(id: str) -> None:
        """Pause a grant or package; until you resume it, the app can read nothing.

        Parameters
        ----------
        id
            The id of a grant, or of a package (several grants approved in one decision).
        """
        with open_store() as store, store.authorization.write() as writer:
            held_id = _current(writer, id, store.clock())
            if pause_access(writer, held_id, local_acting(), store.clock()) is None:
                raise _unknown()
        words().print(f"Access {held_id} is paused. Resume it with: pdpp grant resume {held_id}")

    @app.command
    def resume(
        id: str | None = None, *, all: Annotated[bool, Parameter(negative="")] = False
    ) -> None:
        """Resume paused grants. After a restore, this confirms which grants you keep.

        Parameters
        ----------
        id
            The id of a grant, or of a package (several grants approved in one decision).
        all
            Resume every paused grant. After a restore, first end the grants that you had ended
            after the backup.
        """
        with open_store() as store:
            if (id is None) is not all:
                raise CommandError("usage", "Give a grant or package id, or use --all.")
            with store.authorization.write() as writer:
                query = HeldQuery(store.clock(), lasts=True)
                holdings = list_held(writer, query) if all else ()
                chosen = (
                    [holding.id for holding in holdings]
                    if id is None
                    else [_current(writer, id, store.clock())]
                )
                moved = [
                    resume_access(writer, grant_id, local_acting(), store.clock())
                    for grant_id in chosen
                ]
        if id is not None and moved == [None]:
            raise _unknown()
        words().print(
            f"{counted(sum(moved_count or 0 for moved_count in moved), 'grant')} resumed."
        )


_RESULT_CHARS = Number(gte=RESULT_CHARS, lte=MOST_RESULT_CHARS)


def _add_limits(app: cyclopts.App, open_store: StoreOpener) -> None:
    """Daily limits of a grant, and its unusual reading."""

    @app.command
    def limit(
        id: str,
        *,
        records: Annotated[int | None, Parameter(validator=Number(gte=0))] = None,
        bytes: Annotated[int | None, Parameter(validator=Number(gte=0))] = None,
        requests: Annotated[int | None, Parameter(validator=Number(gte=0))] = None,
        result_chars: Annotated[int | None, Parameter(validator=_RESULT_CHARS)] = None,
        pause: Literal["always", "never", "as-set"] | None = None,
        events: Literal["allow", "never"] | None = None,
    ) -> None:
        """Limit what a grant or package may read per UTC day; the app sees how much remains.

        Limits that you do not name stay unchanged.

        Parameters
        ----------
        id
            The id of a grant, or of a package (several grants approved in one decision).
        records
            The most records per day; 0 removes the limit.
        bytes
            The most bytes per day; 0 removes the limit.
        requests
            The most requests per day; 0 removes the limit.
        result_chars
            The most characters of one tool result over /mcp: 20,000 (the default) to 200,000.
        pause
            Whether unusual reading pauses the access; as-set follows PDPP_PAUSE_ON_ALARM.
        events
            Whether the app may ask for notifications of changes; never also pauses current
            notifications.
        """
        given = {
            "records_per_day": records,
            "bytes_per_day": bytes,
            "requests_per_day": requests,
        }
        changes: dict[str, Any] = {n: v or None for n, v in given.items() if v is not None}
        if result_chars is not None:
            changes["result_chars"] = None if result_chars == RESULT_CHARS else result_chars
        if pause is not None:
            changes["pauses"] = {"always": True, "never": False, "as-set": None}[pause]
        if events is not None:
            changes["events"] = True if events == "allow" else None
        if not changes:
            raise CommandError(
                "usage",
                "Nothing to limit: name at least one limit.",
                "See `pdpp grant limit --help`.",
            )
        with open_store() as store, store.authorization.write() as writer:
            held_id = _current(writer, id, store.clock())
            holding = _found(show_held(writer, held_id, store.clock()))
            limits = reading_figures(writer, holding.id, store.clock()).limits
            limit_reading(writer, replace(limits, **changes), local_acting(), store.clock())
            if events == "never":
                grant_ids = {grant.grant_id for grant in holding.grants}
                pause_all(writer, grant_ids, local_acting(), store.clock())
        words().print(f"{held_id}: {limit_words(replace(limits, **changes))}.")

    @app.command
    def dismiss(id: str) -> None:
        """Dismiss the alarms about unusual reading by a grant or package.

        Parameters
        ----------
        id
            The id of a grant, or of a package (several grants approved in one decision).
        """
        with open_store() as store, store.authorization.write() as writer:
            held_id = _current(writer, id, store.clock())
            holding = _found(show_held(writer, held_id, store.clock()))
            count = dismiss_alarms(writer, holding.id, local_acting(), store.clock())
        words().print(f"{counted(count, 'alarm')} dismissed.")


def _request(
    store: OwnerStore,
    client: str,
    options: SelectionOptions,
    expires: Expiry | None,
    *,
    ai_training: bool,
) -> LocalRequest:
    if options.connection:
        options = replace(options, connection=sorted(_connection_ids(store, options.connection)))
    details = options.details(lambda name: _source_uri(store, name))
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


def _source_uri(store: OwnerStore, name: str) -> str:
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


def _grant(store: OwnerStore, request: LocalRequest, *, yes: bool) -> Issued:
    if not yes and not sys.stdin.isatty():
        raise CommandError(
            "usage",
            "Not running in a terminal, so I cannot ask.",
            "Add --yes to grant the access without a question.",
        )
    review = store.granting.preview(request)
    out = words()
    evidence = store.evidence.gather(review.prospective())
    _print_review(review, evidence, out)
    _print_empty_limits(store, review, evidence)
    out.print()
    if not yes and not _agreed():
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


def _agreed(question: str = "Allow this access?") -> bool:
    words().print(f"{question} [y/N] ", end="", markup=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _cached(
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
            "The credential file could not be written, so the new grant was ended again.",
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


def _print_granted(issued: Issued, request: LocalRequest, path: Path, *, as_json: bool) -> None:
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


def _shown(
    reader: AuthorizationReader, held_id: str, now_ns: int
) -> tuple[Holding, ReadingFigures, str | None]:
    """Everything that is shown of one."""
    holding = _found(show_held(reader, held_id, now_ns))
    return holding, reading_figures(reader, holding.id, now_ns), token_binding(reader, holding)


def _current(reader: AuthorizationReader, held_id: str, now_ns: int) -> str:
    """The id that it goes on by; where a change gave it a new one, that is said."""
    current = current_id(reader, held_id, now_ns)
    if current != held_id:
        words().print(f"{held_id} was changed, and {current} took its place.", soft_wrap=True)
    return current


def _found(holding: Holding | None) -> Holding:
    if holding is None:
        raise _unknown()
    return holding


def _unknown() -> CommandError:
    return CommandError(
        "not_found",
        "No grant or package has this id.",
        "Run `pdpp grant list --all` to see all ids.",
    )


def _print_review(review: Review, evidence: Mapping[StreamKey, Evidence], out: Console) -> None:
    """What would be granted, as the consent page would show it."""
    terms = review.terms
    name = review.asked.display.get("name", review.asked.client.client_id)
    out.print(Text.assemble(("For    ", "bold"), plain(name)))
    mode = "one-time" if terms.access_mode == "single_use" else "ongoing"
    out.print(Text.assemble(("Access ", "bold"), f"{mode}, until {day(terms.expires_at_ns)}"))
    for entry in terms.entries:
        _print_entry(entry, evidence, out)


def _print_entry(entry: EntryTerms, evidence: Mapping[StreamKey, Evidence], out: Console) -> None:
    offer = entry.offer
    names = {c.connection_id: c.display_name or c.connection_id for c in offer.connections}
    out.print()
    out.print(Text.assemble((f"{offer.declaration.display_name}", "bold cyan")))
    for stream in entry.streams:
        _print_stream(stream, names, evidence, out)


def _print_stream(
    stream: StreamGrant,
    names: Mapping[str, str],
    evidence: Mapping[StreamKey, Evidence],
    out: Console,
) -> None:
    stream_keys = [(connection, stream.name) for connection in stream.instance_ids]
    evidences = [evidence[key] for key in stream_keys if key in evidence]
    out.print(Text.assemble("  ", (stream.name, "bold"), f"  {_count_words(evidences)}"))
    for label, text in _stream_facts(stream, names):
        out.print(Text.assemble(f"    {label:<7}", plain(text)))


def _stream_facts(stream: StreamGrant, names: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is granted of a stream, its connections by their names; what is empty is left out."""
    facts = {
        "of": ", ".join(names.get(connection, connection) for connection in stream.instance_ids),
        "fields": ", ".join(stream.fields),
        "when": _window_words(stream.time_constraint),
        "only": counted(len(stream.resources), "named record") if stream.resources else "",
    }
    limits = [("only", only_words(limit)) for limit in stream.only]
    return [*((label, text) for label, text in facts.items() if text), *limits]


def only_words(limit: ContentLimit) -> str:
    """A limit by content, as far as it fits a line."""
    texts = [str(text) for text in limit.values[:SHOWN_VALUES]]
    more = len(limit.values) - len(texts)
    return f"{limit.field}: {', '.join(texts)}{f' and {more} more' if more else ''}"


def _count_words(evidences: Iterable[Evidence]) -> str:
    """`412 records, 2002-09-01 to 2002-10-31`."""
    items = list(evidences)
    count = sum(evidence.count for evidence in items)
    bound = "at least " if any(evidence.at_least for evidence in items) else ""
    counted = f"{bound}{count:,} {'record' if count == 1 else 'records'}"
    earliest = min((e.earliest for e in items if e.earliest), default=None)
    latest = max((e.latest for e in items if e.latest), default=None)
    if earliest is None or latest is None:
        return counted
    return f"{counted}, {earliest[:10]} to {latest[:10]}"


def _window_words(window: TimeConstraint | None) -> str:
    """The time window in words of its field; empty without one."""
    if window is None:
        return ""
    since = f" from {window.since}" if window.since else ""
    until = f" before {window.until}" if window.until else ""
    return f"{window.field}{since}{until}"


def _print_held_list(holdings: Sequence[Holding], alarms: Collection[str], out: Console) -> None:
    """One line each, and which of them read something unusual."""
    if not holdings:
        out.print("No app has access.")
        return
    out.print(table(COLUMNS, (_line(holding) for holding in holdings)))
    for holding in holdings:
        if holding.id in alarms:
            out.print(f"Unusual reading noticed: pdpp grant show {holding.id}", style="red")


def _line(holding: Holding) -> tuple[object, ...]:
    streams = [name for grant in holding.grants for name in _streams(grant)]
    return (
        holding.id,
        holding.title,
        day(holding.expires_at_ns) if holding.status == "active" else holding.status,
        "–" if holding.last_used_at_ns is None else day(holding.last_used_at_ns),
        ", ".join(streams),
    )


def _streams(grant: HeldGrant) -> list[str]:
    if grant.grant is None:
        return [f"{grant.connector_key}: unreadable"]
    return [f"{grant.connector_key}/{stream.name}" for stream in grant.grant.streams]


_BINDINGS = {
    "key": "token bound to the app's key",
    "bearer": "ordinary bearer token",
    None: "no token issued yet",
}


def _print_held(
    holding: Holding, binding: str | None, figures: ReadingFigures, out: Console
) -> None:
    """Everything about one."""
    facts = {
        "id": holding.id,
        **({} if holding.name is None else {"name": holding.name}),
        "client": f"{holding.client_name} ({holding.client_id})",
        "state": holding.status
        if holding.reason is None
        else f"{holding.status} ({holding.reason})",
        "access": "once" if holding.access_mode == "single_use" else "standing",
        "since": minute(holding.issued_at_ns),
        "until": day(holding.expires_at_ns),
        "last used": minute(holding.last_used_at_ns),
        "token": _BINDINGS[binding],
        **({} if holding.replaces is None else {"changed from": holding.replaces}),
        "read today": str(
            Joined(
                (
                    counted(figures.today.records, "record"),
                    counted(figures.today.requests, "request"),
                )
            )
        ),
        "a day": limit_words(figures.limits),
    }
    print_facts(facts.items(), out)
    for alarm in figures.alarms:
        words_of_alarm = said_of(alarm.rule, alarm.detail)
        out.print(Text(f"Unusual, {minute(alarm.at_ns)}: {words_of_alarm}.", style="red"))
    if figures.alarms:
        out.print(f"Dismiss the alarm with: pdpp grant dismiss {holding.id}")
    for grant in holding.grants:
        _print_grant(grant, out)


def _print_grant(held_grant: HeldGrant, out: Console) -> None:
    out.print()
    title = f"{held_grant.connector_key}  {held_grant.grant_id}  {held_grant.status}"
    out.print(Text(title, style="bold cyan"))
    for stream in held_grant.grant.streams if held_grant.grant else ():
        out.print(Text.assemble("  ", (stream.name, "bold")))
        print_facts(_stream_facts(stream, {}), out, "    ")


def _held_json(holding: Holding) -> dict[str, object]:
    """One grant or package; no token, no code."""
    return {
        "id": holding.id,
        "kind": holding.kind,
        "client_id": holding.client_id,
        "client_name": holding.client_name,
        "name": holding.name,
        "replaces": holding.replaces,
        "status": holding.status,
        "access_mode": holding.access_mode,
        "issued_at": instant_text(holding.issued_at_ns),
        "expires_at": _instant(holding.expires_at_ns),
        "revoked_at": _instant(holding.revoked_at_ns),
        "reason": holding.reason,
        "last_used_at": _instant(holding.last_used_at_ns),
        "grants": [_grant_json(grant) for grant in holding.grants],
    }


def _figures_json(figures: ReadingFigures) -> dict[str, object]:
    """What was read, what may be, and what was unusual."""
    limits = figures.limits
    return {
        "read_today": asdict(figures.today),
        "limits_per_day": {
            "records": limits.records_per_day,
            "bytes": limits.bytes_per_day,
            "requests": limits.requests_per_day,
        },
        "pauses_on_alarm": limits.pauses,
        "result_chars": limits.result_chars or RESULT_CHARS,
        "events": limits.events is True,
        "alarms": [
            {"rule": alarm.rule, "at": instant_text(alarm.at_ns), "paused": alarm.paused}
            | {"said": said_of(alarm.rule, alarm.detail)}
            for alarm in figures.alarms
        ],
    }


def _grant_json(held_grant: HeldGrant) -> dict[str, object]:
    streams = held_grant.grant.streams if held_grant.grant else ()
    return {
        "grant_id": held_grant.grant_id,
        "connector_key": held_grant.connector_key,
        "status": held_grant.status,
        "streams": [render_stream_grant(stream) for stream in streams],
    }


def _instant(ns: int | None) -> str | None:
    return None if ns is None else instant_text(ns)


grant = granting_app(open_store, default_cache)
