"""Pending authorization requests: stored, pushed, found by user code.

Rule: handle, `request_uri`, device code and user code of a request are independent random values;
the store knows the last three by hash only.  Source: docs/contract/authorization-server.md 0, 5, 8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from pdpp_kernel.errors import NotFound, RateLimitExceeded
from pdpp_kernel.oauth_errors import (
    ApprovalConflict,
    InvalidRequestUri,
    InvalidUserCode,
    RequestClosed,
)
from pdpp_kernel.unprinted import Unprinted
from pdpp_kernel.values import NANOSECONDS
from personal_server.consent.authorization_requests import SCOPE_OWNER, CodeRequest, RequestedAccess
from personal_server.consent.credentials import (
    DEVICE_CODE,
    REQUEST,
    REQUEST_URI,
    RandomBytes,
    new_id,
    new_secret,
    new_user_code,
    normal_user_code,
    secret_hash,
    shown_user_code,
)
from personal_server.granting.audit import SERVER, Acting, Subject, audit
from personal_server.granting.transitions import close_request
from personal_server.storage.authorization_rows import ClientRow, RequestRow
from personal_server.storage.ports.authorization_store import (
    AuthorizationStore,
    AuthorizationWriter,
)

PUSHED_NS = 300 * NANOSECONDS
PENDING_NS = 15 * 60 * NANOSECONDS
DEVICE_NS = 600 * NANOSECONDS
COLLECT_NS = 120 * NANOSECONDS
POLL_SECONDS = 5
MAX_PENDING = 200
OWNER_DEVICE = "owner_device"
"""The flow in which a device asks to act as the owner."""


class Asking(msgspec.Struct, frozen=True):
    """Who asks, and on which of our origins."""

    client: ClientRow
    origin: str
    auth_method: str = "none"


class DeviceCodes(Unprinted, frozen=True):
    """What a device is told.  Secrets in clear."""

    device_code: str
    user_code: str
    expires_in_seconds: int
    interval_seconds: int


class Requesting:
    """Stores requests until they are decided."""

    def __init__(
        self, store: AuthorizationStore, clock: Callable[[], int], random_bytes: RandomBytes
    ) -> None:
        self._store = store
        self._clock = clock
        self._random_bytes = random_bytes

    def ask_for_code(
        self, asking: Asking, request: CodeRequest, redirect_uri: str, acting: Acting
    ) -> str:
        """The handle of a new pending request.  Raises: RateLimitExceeded."""
        row = self._code_row(asking, request, redirect_uri, PENDING_NS)
        self._insert(row, acting)
        return row.request_id

    def push(self, asking: Asking, request: CodeRequest, redirect_uri: str, acting: Acting) -> str:
        """The `request_uri` of a new pushed request.  Raises: RateLimitExceeded."""
        uri = new_secret(REQUEST_URI, self._random_bytes)
        row = self._code_row(asking, request, redirect_uri, PUSHED_NS)
        self._insert(replace(row, request_uri_hash=secret_hash(uri)), acting)
        return uri

    def open_pushed(self, client_id: str, request_uri: str) -> str:
        """The handle of a pushed request; its time runs from the first opening.

        Raises: InvalidRequestUri, RequestClosed.
        """
        now_ns = self._clock()
        with self._store.write() as writer:
            row = writer.get(
                RequestRow, RequestRow.request_uri_hash.equals(secret_hash(request_uri))
            )
            unknown = InvalidRequestUri(
                "The server does not know this request, or the request is too old."
            )
            if row is None or row.client_id != client_id:
                raise unknown
            first = row.expires_at_ns - row.created_at_ns == PUSHED_NS
            if row.status != "pending" or (row.expires_at_ns <= now_ns and not first):
                raise RequestClosed("This request was decided already. Start again from the app.")
            if row.expires_at_ns <= now_ns:
                raise unknown
            if first:
                to = [RequestRow.expires_at_ns.to(now_ns + PENDING_NS)]
                writer.change(RequestRow, to, RequestRow.request_id.equals(row.request_id))
        return row.request_id

    def ask_for_device(
        self, asking: Asking, access: RequestedAccess, acting: Acting
    ) -> DeviceCodes:
        """The codes of a new device request.  Raises: RateLimitExceeded."""
        now_ns = self._clock()
        device_code = new_secret(DEVICE_CODE, self._random_bytes)
        user_code = new_user_code(self._random_bytes)
        owner = access.scope == SCOPE_OWNER
        row = replace(
            self._row(asking, access, OWNER_DEVICE if owner else "device", now_ns, DEVICE_NS),
            picker=access.details is None and not owner,
            device_code_hash=secret_hash(device_code),
            user_code_hash=secret_hash(user_code),
            address=acting.address,
            user_agent=acting.user_agent,
        )
        self._insert(row, acting)
        return DeviceCodes(
            device_code, shown_user_code(user_code), DEVICE_NS // NANOSECONDS, POLL_SECONDS
        )

    def find_device(self, typed: str, acting: Acting) -> RequestRow:
        """The pending device request of a user code; a wrong one is counted.

        Raises: InvalidUserCode, in one wording.
        """
        now_ns = self._clock()
        with self._store.write() as writer:
            user_code_hash = secret_hash(normal_user_code(typed))
            row = writer.get(RequestRow, RequestRow.user_code_hash.equals(user_code_hash))
            if row is not None and row.status == "pending" and now_ns < row.expires_at_ns:
                return row
            audit(writer, "device.wrong_code", acting, now_ns)
        raise InvalidUserCode("This code is not valid. Look at the device and type the code again.")

    def approve_owner_device(self, request_id: str, acting: Acting) -> None:
        """Let a device act as the owner.  The page asks for a fresh sign-in and a tick.

        Raises: NotFound, ApprovalConflict, RequestClosed.
        """
        now_ns = self._clock()
        with self._store.write() as writer:
            row = writer.get(
                RequestRow,
                RequestRow.request_id.equals(request_id),
                RequestRow.flow.equals(OWNER_DEVICE),
            )
            if row is None:
                raise NotFound("There is no such request. Start again on the device that asks.")
            if row.expires_at_ns <= now_ns:
                raise RequestClosed("This request is too old. Start again from the device.")
            to = [
                RequestRow.decided_at_ns.to(now_ns),
                RequestRow.collect_until_ns.to(max(row.expires_at_ns, now_ns + COLLECT_NS)),
            ]
            if not close_request(
                writer, "approved", now_ns, RequestRow.request_id.equals(request_id), columns=to
            ):
                raise ApprovalConflict("This request was decided already.")
            audit(
                writer,
                "request.approved",
                acting,
                now_ns,
                Subject(row.client_id),
                request=request_id,
            )

    def _code_row(
        self, asking: Asking, request: CodeRequest, redirect_uri: str, ttl_ns: int
    ) -> RequestRow:
        row = self._row(asking, request.wanted, "code", self._clock(), ttl_ns)
        return replace(
            row,
            picker=request.wanted.details is None,
            redirect_uri=redirect_uri,
            state=request.state,
            code_challenge=request.code_challenge,
            jkt=request.jkt,
        )

    def _row(
        self, asking: Asking, access: RequestedAccess, flow: str, now_ns: int, ttl_ns: int
    ) -> RequestRow:
        return RequestRow(
            request_id=new_id(REQUEST, self._random_bytes),
            flow=flow,
            client_id=asking.client.client_id,
            origin=asking.origin,
            resource=access.resource,
            scope=access.scope,
            details=access.details,
            display=access.display,
            auth_method=asking.auth_method,
            created_at_ns=now_ns,
            expires_at_ns=now_ns + ttl_ns,
            interval_seconds=POLL_SECONDS,
        )

    def _insert(self, row: RequestRow, acting: Acting) -> None:
        with self._store.write() as writer:
            _make_room(writer, row.created_at_ns)
            writer.insert(row)
            subject = Subject(row.client_id)
            event = "request.created" if row.flow == "code" else "device.created"
            detail = {"request": row.request_id, "flow": row.flow}
            audit(writer, event, acting, row.created_at_ns, subject, **detail)


def _make_room(writer: AuthorizationWriter, now_ns: int) -> None:
    """The oldest unopened request gives way; opened ones do not."""
    pending = (RequestRow.status.equals("pending"), RequestRow.expires_at_ns.above(now_ns))
    if writer.count(RequestRow, *pending) < MAX_PENDING:
        return
    unopened = writer.rows(
        RequestRow,
        RequestRow.opened_at_ns.equals(None),
        *pending,
        order=RequestRow.created_at_ns,
        limit=1,
    )
    if not unopened:
        first = writer.rows(RequestRow, *pending, order=RequestRow.expires_at_ns, limit=1)[0]
        raise RateLimitExceeded(
            "Too many requests are waiting for the owner. Try again later.",
            retry_after_seconds=-((now_ns - first.expires_at_ns) // NANOSECONDS),
        )
    pushed_out, subject = unopened[0].request_id, Subject(unopened[0].client_id)
    close_request(writer, "expired", now_ns, RequestRow.request_id.equals(pushed_out))
    audit(writer, "request.expired", SERVER, now_ns, subject, request=pushed_out)
