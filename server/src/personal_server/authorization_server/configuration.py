"""What the composition root decides about the authorization server."""

from __future__ import annotations

import msgspec

from personal_server.consent.client_registration import (
    AUTHORIZATION_CODE,
    CLI_CLIENT,
    DEVICE_CODE,
    OWNER_CLI_CLIENT,
    OWNER_PROFILE,
    PRE_REGISTERED,
    REFRESH_TOKEN,
)
from personal_server.consent.credentials import CLIENT_REFERENCE, RandomBytes, new_id
from personal_server.consent.redirects import DEFAULT_SCHEMES
from personal_server.storage.authorization_rows import ClientRow
from personal_server.storage.ports.authorization_store import AuthorizationStore


class PreRegistered(msgspec.Struct, frozen=True):
    """A client that is set up on this server; `owner_profile` lets it ask to act as the owner."""

    client_id: str
    client_name: str
    redirect_uris: tuple[str, ...] = ()
    owner_profile: bool = False


BUILT_IN = (
    PreRegistered(CLI_CLIENT, "PDPP command line", ("http://127.0.0.1/callback",)),
    PreRegistered(OWNER_CLI_CLIENT, "PDPP owner command line", owner_profile=True),
)


class Configuration(msgspec.Struct, frozen=True):
    """Switches and lists.

    Shapes: `origins` are all origins this server answers for.
    """

    origins: tuple[str, ...] = ()
    dynamic_registration: bool = True
    client_metadata_documents: bool = True
    redirect_schemes: tuple[str, ...] = DEFAULT_SCHEMES
    pre_registered: tuple[PreRegistered, ...] = BUILT_IN


def keep_pre_registered(
    store: AuthorizationStore, configuration: Configuration, now_ns: int, random_bytes: RandomBytes
) -> None:
    """Bring the table of clients to what is configured; called at start.

    A client that is no longer configured is forgotten; what it held stays and can be ended.
    """
    with store.write() as writer:
        configured = {client.client_id for client in configuration.pre_registered}
        for row in writer.rows(ClientRow, ClientRow.registration.equals(PRE_REGISTERED)):
            if row.client_id not in configured:
                writer.delete(ClientRow, ClientRow.client_id.equals(row.client_id))
        for client in configuration.pre_registered:
            grant_types = [DEVICE_CODE, REFRESH_TOKEN]
            grant_types += [AUTHORIZATION_CODE] if client.redirect_uris else []
            grant_types += [OWNER_PROFILE] if client.owner_profile else []
            facts = [
                ClientRow.name.to(client.client_name),
                ClientRow.registration.to(PRE_REGISTERED),
                ClientRow.redirect_uris.to(client.redirect_uris),
                ClientRow.grant_types.to(tuple(grant_types)),
            ]
            if writer.change(ClientRow, facts, ClientRow.client_id.equals(client.client_id)):
                continue
            row = ClientRow(
                client_id=client.client_id,
                client_ref=new_id(CLIENT_REFERENCE, random_bytes),
                registration=PRE_REGISTERED,
                name=client.client_name,
                redirect_uris=client.redirect_uris,
                grant_types=tuple(grant_types),
                registered_at_ns=now_ns,
            )
            writer.insert(row)
