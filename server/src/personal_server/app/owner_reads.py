"""`/v1` for a command of the owner, in this process; no server need run.

Source: docs/contract/authorization-server.md 14.4.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from msgspec.structs import replace

from pdpp_mcp_server.rs_client.http import RsClient
from pdpp_mcp_server.rs_client.inner_application import InnerApplication
from pdpp_mcp_server.rs_client.port import FixedBearer
from personal_server.app.meaning import Meaning
from personal_server.app.own_version import VERSION
from personal_server.app.stores import open_stores
from personal_server.app.v1 import callbacks_of, events_of, v1_app
from personal_server.domain.own_values import OwnSpace
from personal_server.reading.disclosure_recorder import DisclosureRecorder
from personal_server.reading.owner import owner_of
from personal_server.reading.proofs import Proofs
from personal_server.reading.tokens import TokenResolver, TokenState
from personal_server.settings import Settings
from personal_server.web.origins import origin_policy

LOCAL_OWNER = "local-owner"
"""No token: it names the owner to an application that nobody else can call."""


@contextmanager
def open_owner_reads(settings: Settings) -> Generator[RsClient, None, None]:
    """`/v1` for a command of the owner, in this process; no server need run.

    Raises: DatabaseTooNew, StorageUnavailable.
    Source: docs/contract/authorization-server.md 14.4.
    """
    with open_stores(settings, serving=False) as stores:
        meaning = Meaning(stores, settings.data_dir)
        stores = replace(stores, reads=replace(stores.reads, embedder=meaning))
        recorder = DisclosureRecorder(stores.disclosures, stores.clock, background=False)
        origins = origin_policy(settings).origins
        proofs = Proofs(stores.clock, stores.random_bytes)
        resolver = TokenResolver(stores.authorization, stores.clock, proofs)
        events = events_of(stores, resolver, origins)
        v1 = v1_app(settings, stores, events, recorder, callbacks_of(settings), OwnSpace())
        owner = TokenState(replace(owner_of(stores.records.subject_id), resource=origins[0]))
        inner = InnerApplication(v1, {"token_states": {LOCAL_OWNER: owner}})
        bearer = FixedBearer(LOCAL_OWNER)
        try:
            yield RsClient(inner, origins[0], bearer, VERSION)
        finally:
            meaning.close()
