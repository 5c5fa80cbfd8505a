"""Who calls: a client by its id, and how it proves itself at an endpoint.

Rule: an unknown or blocked client, a bad assertion and an unusable document are all
`invalid_client`; which check failed stands in the audit trail only.
Source: docs/contract/authorization-server.md 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import anyio.to_thread
import msgspec

from pdpp_kernel.oauth_errors import BadRequest, InvalidClient, UnauthorizedClient
from personal_server.authorization_server.client_assertions import (
    ASSERTION_TYPE,
    UnknownKey,
    check_claims,
    peek,
    refusal,
    verify_signature,
)
from personal_server.authorization_server.client_metadata import Documents
from personal_server.authorization_server.configuration import Configuration
from personal_server.authorization_server.endpoint_requests import EndpointRequest
from personal_server.consent.client_documents import NONE, PRIVATE_KEY_JWT, ClientDocument
from personal_server.consent.client_registration import CHECK, DOCUMENT, GRANT_TYPES
from personal_server.consent.credentials import CLIENT_REFERENCE, RandomBytes, new_id, secret_hash
from personal_server.granting.audit import METADATA_CHANGED, Acting, Subject, audit
from personal_server.granting.clients import forget_check
from personal_server.storage.authorization_rows import AssertionIdRow, ClientRow
from personal_server.storage.ports.authorization_store import (
    AuthorizationStore,
    AuthorizationWriter,
)
from personal_server.storage.tables import Assignment


class AuthenticatedClient(msgspec.Struct, frozen=True):
    """A client, and how it proved itself just now."""

    client: ClientRow
    auth_method: str


class Clients:
    """Finds clients and judges their proofs."""

    def __init__(
        self,
        store: AuthorizationStore,
        configuration: Configuration,
        documents: Documents,
        clock: Callable[[], int],
        random_bytes: RandomBytes,
    ) -> None:
        self._store = store
        self._configuration = configuration
        self._documents = documents
        self._clock = clock
        self._random_bytes = random_bytes

    async def find(
        self, client_id: str, call: EndpointRequest, *, is_kept: bool = True
    ) -> ClientRow:
        """The client of a new authorization, or of one that only checks.

        Shapes: without `kept`, one that comes by a document is not written down.
        Raises: InvalidClient.
        """
        row, _ = await self._known(client_id, call, stale=False, is_kept=is_kept)
        return row

    async def counted_as(self, call: EndpointRequest) -> str | tuple[str, str]:
        """Whose requests these are, as limits count: of a network, or of an app in it.

        An app that the owner allowed before has a count of its own, and so have all pages in
        browsers together. All programs of one machine call from one address, and one of them, or
        a website that is open there, could use up what the others need.
        """
        client_id = call.parameters.get("client_id")
        if client_id is None:
            return call.counted_network
        row = await anyio.to_thread.run_sync(self._row, client_id)
        is_known = row is not None and row.first_approved_at_ns is not None
        return (call.network, client_id) if is_known else call.counted_network

    async def forget_check(self, client: ClientRow) -> None:
        """What only checked is gone with its answer."""
        if client.registration == CHECK:
            now_ns = self._clock()
            await anyio.to_thread.run_sync(forget_check, self._store, client.client_id, now_ns)

    async def authenticate(
        self, call: EndpointRequest, *, stale: bool = False
    ) -> AuthenticatedClient:
        """The client that calls an endpoint.

        `stale` lets an older document do (refresh, revocation).
        Raises: InvalidClient, BadRequest, UnauthorizedClient.
        """
        if call.is_of_owner and call.is_of_page:
            raise UnauthorizedClient("A page in a browser cannot act as the owner's own program.")
        assertion = call.parameters.get("client_assertion")
        if assertion is None and "client_assertion_type" in call.parameters:
            raise BadRequest("The client assertion is missing.", param="client_assertion")
        client_id = call.parameters.get("client_id")
        try:
            if assertion is None:
                if client_id is None:
                    raise InvalidClient("The request has no client_id.", param="client_id")
                return await self._without_assertion(client_id, call, stale=stale)
            return await self._with_assertion(client_id, assertion, call, stale=stale)
        except InvalidClient as refused:
            await self._note_refusal(client_id, refused, call.acting())
            raise InvalidClient(refused.text, param=refused.param) from None

    async def _without_assertion(
        self, client_id: str, call: EndpointRequest, *, stale: bool
    ) -> AuthenticatedClient:
        row, _ = await self._caller(client_id, call, stale=stale)
        if row.auth_method != NONE:
            raise refusal("missing")
        return AuthenticatedClient(row, NONE)

    async def _with_assertion(
        self, client_id: str | None, assertion: str, call: EndpointRequest, *, stale: bool
    ) -> AuthenticatedClient:
        if call.parameters.get("client_assertion_type") != ASSERTION_TYPE:
            raise refusal("type")
        _, claims = peek(assertion)
        subject = claims.get("sub")
        if not isinstance(subject, str) or client_id not in (None, subject):
            raise refusal("sub")
        row, document = await self._caller(subject, call, stale=stale)
        if document is None or not document.publishes_keys:
            raise refusal("keys")
        await self._verify(assertion, document)
        endpoint = call.origin + call.request.url.path
        audiences = {call.origin, endpoint, f"{call.origin}/oauth/token"}
        jti, expires_at_ns = check_claims(claims, subject, audiences, self._clock())
        await anyio.to_thread.run_sync(self._use_once, subject, jti, expires_at_ns)
        return AuthenticatedClient(row, PRIVATE_KEY_JWT)

    async def _verify(self, assertion: str, document: ClientDocument) -> None:
        try:
            keys = await self._documents.keys(document)
            verify_signature(assertion, keys, document.signing_alg)
        except UnknownKey:
            keys = await self._documents.keys(document, anew=True)
            verify_signature(assertion, keys, document.signing_alg)

    async def _caller(
        self, client_id: str, call: EndpointRequest, *, stale: bool
    ) -> tuple[ClientRow, ClientDocument | None]:
        """Who calls an endpoint: never what only checks."""
        row, document = await self._known(client_id, call, stale=stale)
        if row.registration == CHECK:
            raise _unknown()
        return row, document

    async def _known(
        self, client_id: str, call: EndpointRequest, *, stale: bool, is_kept: bool = True
    ) -> tuple[ClientRow, ClientDocument | None]:
        document = None
        if client_id.startswith("https://"):
            if not self._configuration.client_metadata_documents:
                raise _unknown()
            document = await self._documents.client(client_id, call.origin, stale=stale)
            if is_kept:
                row = await anyio.to_thread.run_sync(self._keep, document, call.acting("server"))
            else:
                known = await anyio.to_thread.run_sync(self._row, client_id)
                row = self._made(document)
                if known is not None:
                    row = replace(row, blocked_at_ns=known.blocked_at_ns)
        else:
            found = await anyio.to_thread.run_sync(self._row, client_id)
            if found is None:
                raise _unknown()
            row = found
        if row.blocked_at_ns is not None:
            raise _unknown()
        return row, document

    def _row(self, client_id: str) -> ClientRow | None:
        with self._store.read() as reader:
            return reader.get(ClientRow, ClientRow.client_id.equals(client_id))

    def _keep(self, document: ClientDocument, acting: Acting) -> ClientRow:
        """The row of a document's client, brought to what the document says."""
        facts = (
            ClientRow.name.to(document.name),
            ClientRow.display.to(dict(document.display)),
            ClientRow.redirect_uris.to(document.redirect_uris),
            ClientRow.grant_types.to(document.grant_types or GRANT_TYPES),
            ClientRow.auth_method.to(document.auth_method),
            ClientRow.dpop_bound.to(document.dpop_bound),
            ClientRow.published_on.to(document.published_on),
        )
        row = self._row(document.client_id)
        if row is not None and not _changed(row, facts):
            return row
        with self._store.write() as writer:
            self._write(writer, document, facts, acting)
            stored = writer.get(ClientRow, ClientRow.client_id.equals(document.client_id))
        if stored is None:
            raise _unknown()
        return stored

    def _write(
        self,
        writer: AuthorizationWriter,
        document: ClientDocument,
        facts: Sequence[Assignment[ClientRow]],
        acting: Acting,
    ) -> None:
        now_ns = self._clock()
        subject = Subject(document.client_id)
        stored = writer.get(ClientRow, ClientRow.client_id.equals(document.client_id))
        if stored is not None:
            changed = _changed(stored, facts)
            writer.change(ClientRow, facts, ClientRow.client_id.equals(document.client_id))
            audit(writer, METADATA_CHANGED, acting, now_ns, subject, changed=changed)
            return
        writer.insert(self._made(document))
        audit(writer, "client.registered", acting, now_ns, subject)

    def _made(self, document: ClientDocument) -> ClientRow:
        return ClientRow(
            client_id=document.client_id,
            client_ref=new_id(CLIENT_REFERENCE, self._random_bytes),
            registration=DOCUMENT,
            name=document.name,
            display=dict(document.display),
            redirect_uris=document.redirect_uris,
            grant_types=document.grant_types or GRANT_TYPES,
            auth_method=document.auth_method,
            dpop_bound=document.dpop_bound,
            published_on=document.published_on,
            registered_at_ns=self._clock(),
        )

    def _use_once(self, client_id: str, jti: str, expires_at_ns: int) -> None:
        jti_hash = secret_hash(f"{client_id}\n{jti}")
        with self._store.write() as writer:
            if writer.get(AssertionIdRow, AssertionIdRow.jti_hash.equals(jti_hash)) is not None:
                raise refusal("replay")
            writer.insert(AssertionIdRow(jti_hash=jti_hash, expires_at_ns=expires_at_ns))

    async def _note_refusal(
        self, client_id: str | None, refused: InvalidClient, acting: Acting
    ) -> None:
        check = refused.members.get("check", "client")

        def note() -> None:
            with self._store.write() as writer:
                row = (
                    None
                    if client_id is None
                    else writer.get(ClientRow, ClientRow.client_id.equals(client_id))
                )
                subject = Subject(None if row is None else row.client_id)
                audit(writer, "client.refused", acting, self._clock(), subject, check=check)

        await anyio.to_thread.run_sync(note)


def _changed(row: ClientRow, facts: Sequence[Assignment[ClientRow]]) -> list[str]:
    """The columns that the facts give another value."""
    return [fact.column.name for fact in facts if getattr(row, fact.column.name) != fact.value]


def _unknown() -> InvalidClient:
    return InvalidClient(
        "The server does not know this client. Register the client, or use its "
        "document URL as client_id."
    )
