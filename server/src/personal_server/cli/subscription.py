"""`pdpp subscription`: who is told that something changed, and how that went.

Source: docs/contract/resource-server.md 15.
"""

from __future__ import annotations

from typing import Annotated

import cyclopts
from cyclopts import Parameter

from pdpp_kernel.values import instant_text
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console, minute, plain, print_facts, words
from personal_server.cli.kept_data import open_store
from personal_server.cli.store import StoreOpener, local_acting
from personal_server.delivery.subscription_states import (
    find_subscription,
    forget,
    go_on,
    pause,
    send_test,
    subscription_list,
)
from personal_server.storage.authorization_rows import SubscriptionRow
from personal_server.storage.ports.authorization_store import AuthorizationReader

Flag = Annotated[bool, Parameter(negative="")]


def subscription_app(open_store: StoreOpener) -> cyclopts.App:
    """The command group `pdpp subscription`."""
    app = cyclopts.App(
        name="subscription", help="Manage the notifications that apps get when records change."
    )

    @app.command(name="list")
    def list_(*, json: Flag = False) -> None:
        """List which apps get notifications, where, and how the last delivery went.

        Parameters
        ----------
        json
            Print JSON.
        """
        with open_store() as store, store.authorization.read() as reader:
            rows = subscription_list(reader)
        if json:
            print_json([_json(row) for row in rows])
        elif rows:
            for row in rows:
                console().print(plain(row.subscription_id), soft_wrap=True)
                print_facts(_facts(row), console(), "  ")
        else:
            console().print("No app gets notifications.")

    @app.command
    def test(subscription: str, /) -> None:
        """Have the running server send a test notification, without any content.

        Parameters
        ----------
        subscription
            The id of the subscription, as `pdpp subscription list` shows it.
        """
        with open_store() as store, store.authorization.write() as writer:
            row = _found(writer, subscription)
            event_id = send_test(writer, row, local_acting(), store.random_bytes, store.clock())
        words().print(
            "The running server now sends a test notification; `pdpp subscription "
            "list` shows whether it arrived."
        )
        console().print(event_id, soft_wrap=True, markup=False)

    @app.command(name="pause")
    def pause_(subscription: str, /) -> None:
        """Pause notifications until you resume them.

        Parameters
        ----------
        subscription
            The id of the subscription, as `pdpp subscription list` shows it.
        """
        with open_store() as store, store.authorization.write() as writer:
            row = _found(writer, subscription)
            if not pause(writer, row, "owner", local_acting(), store.clock()):
                raise CommandError(
                    "invalid_state", f"Nothing to pause: the subscription is {row.status}."
                )
        words().print("Notifications are paused. Resume with: pdpp subscription resume")

    @app.command
    def resume(subscription: str, /) -> None:
        """Resume notifications; the app gets one for what changed meanwhile.

        Parameters
        ----------
        subscription
            The id of the subscription, as `pdpp subscription list` shows it.
        """
        with open_store() as store, store.authorization.write() as writer:
            row = _found(writer, subscription)
            if not go_on(writer, row, "owner", local_acting(), store.clock()):
                raise CommandError(
                    "invalid_state", f"Nothing to resume: the subscription is {row.status}."
                )
        words().print("Notifications are resumed.")

    @app.command
    def delete(subscription: str, /) -> None:
        """Delete a subscription. The app can make a new one while its access lasts.

        Parameters
        ----------
        subscription
            The id of the subscription, as `pdpp subscription list` shows it.
        """
        with open_store() as store, store.authorization.write() as writer:
            forget(writer, _found(writer, subscription), local_acting(), store.clock())
        words().print("The subscription was deleted.")

    return app


def _found(reader: AuthorizationReader, subscription_id: str) -> SubscriptionRow:
    row = find_subscription(reader, subscription_id)
    if row is None:
        raise CommandError("not_found", "No subscription has this id.")
    return row


def _facts(row: SubscriptionRow) -> list[tuple[str, object]]:
    """Each on a line of its own, so that ids and addresses stay whole in any terminal."""
    delivery = f"{minute(row.last_delivery_at_ns)} {row.last_delivery_status or ''}"
    status = f"{row.status} ({row.disabled_reason})" if row.disabled_reason else row.status
    return [
        ("app", row.client_id),
        ("access", row.package_id or row.grant_id or "the owner's"),
        ("address", row.callback_url),
        ("status", status),
        ("last delivery", delivery.strip()),
    ]


def _json(row: SubscriptionRow) -> dict[str, object]:
    delivered_at_ns = row.last_delivery_at_ns
    return {
        "subscription_id": row.subscription_id,
        "client_id": row.client_id,
        "grant_id": row.grant_id,
        "package_id": row.package_id,
        "callback_url": row.callback_url,
        "streams": list(row.streams),
        "connection_ids": list(row.connection_ids),
        "status": row.status,
        "disabled_reason": row.disabled_reason,
        "last_delivery_at": None if delivered_at_ns is None else instant_text(delivered_at_ns),
        "last_delivery_status": row.last_delivery_status,
    }


subscription = subscription_app(open_store)
