"""`pdpp grant`: grants without a browser, on the machine that holds the store.

Rule: what is shown is what is granted; the token goes into the credential cache and nowhere else.
Source: docs/contract/authorization-server.md 15.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import cyclopts
from cyclopts import Parameter
from cyclopts.validators import Number
from rich.text import Text

from pdpp_kernel.result_size import MOST_RESULT_CHARS, RESULT_CHARS
from pdpp_kernel.texts import counted
from pdpp_mcp_server.commands.exits import (
    default_cache,
    print_json,
)
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.selection_options import SelectionOptions
from pdpp_mcp_server.commands.tables import console, words
from pdpp_mcp_server.rs_client.credential_cache import CredentialCache
from personal_server.app.owner_store import OwnerStore
from personal_server.cli.grant_creation import (
    Expiry,
    agreed,
    connection_ids,
    credential_kept,
    grant_asked,
    local_request,
    print_granted,
    source_uri,
)
from personal_server.cli.grant_lines import (
    figures_json,
    held_json,
    print_held,
    print_held_list,
    print_review,
)
from personal_server.cli.kept_data import open_store
from personal_server.cli.store import StoreOpener, local_acting
from personal_server.consent.narrowings import Narrowing
from personal_server.delivery.subscription_states import pause_all
from personal_server.granting.grant_successors import rename_access
from personal_server.granting.holdings import (
    Holding,
    current_id,
    list_held,
    show_held,
    token_binding,
)
from personal_server.granting.local_grants import LocalChange
from personal_server.granting.pauses import pause_access, resume_access
from personal_server.granting.reading_alarms import (
    ReadingFigures,
    dismiss_alarms,
    limit_reading,
    limit_words,
    open_alarms,
    reading_figures,
)
from personal_server.granting.revocations import end_access
from personal_server.storage.ports.authorization_store import AuthorizationReader, HeldQuery

LINES = 50


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
            sources=None if not sources else frozenset(source_uri(store, s) for s in sources),
            streams=None if not streams else dict(map(_named_stream, streams)),
            connections=None if not connections else connection_ids(store, connections),
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
            request = local_request(
                store, client, options, expires, ai_training=ai_training_consent
            )
            issued = grant_asked(store, request, yes=yes)
            cache = CredentialCache(cache_root or default_cache(), words().print)
            path = credential_kept(store, request, issued, cache)
        print_granted(issued, request, path, as_json=json)

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
            print_json([held_json(holding) for holding in first])
        else:
            print_held_list(first, alarms, console())
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
            print_json({**held_json(holding), "token_binding": binding, **figures_json(figures)})
        else:
            print_held(holding, binding, figures, console())

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
            print_json(held_json(holding))
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
            review = store.granting.review_change(request)
            out = words()
            print_review(review, store.evidence.gather(review.prospective()), out)
            out.print()
            if not yes and not agreed("Change the grant to this?"):
                raise CommandError("approval_denied", "Nothing was changed.")
            ids = store.granting.change(request, review, local_acting())
            with store.authorization.read() as reader:
                held_id = ids.package_id or ids.grant_id or ""
                holding = _found(show_held(reader, held_id, store.clock()))
        if json:
            print_json(held_json(holding))
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
                "No limit was given. Give at least one.",
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


grant = granting_app(open_store, default_cache)
