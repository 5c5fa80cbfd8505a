"""Authorization server metadata (RFC 8414).  Source: docs/contract/authorization-server.md 2.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, get_args

import anyio.to_thread
from starlette.responses import Response

from pdpp_kernel.wire_objects import Address, AnyObject, WireObject
from personal_server.authorization_server.client_metadata import Documents
from personal_server.authorization_server.configuration import Configuration
from personal_server.authorization_server.endpoint_requests import EndpointRequest
from personal_server.consent.client_registration import GRANT_TYPES, GrantType
from personal_server.consent.selections import DATA_ACCESS
from personal_server.domain.possession import PROOF_ALGORITHMS
from personal_server.granting.consent_receipts import ConsentReceipts
from personal_server.web.replies import DOCUMENT, answer

SIGNING_ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
AuthMethod = Literal["none", "private_key_jwt"]
KEYS_PATH = "/.well-known/jwks.json"
AUTH_METHODS: tuple[AuthMethod, ...] = get_args(AuthMethod)


class PublicClient(WireObject):
    """A client that need not register."""

    client_id: str
    client_name: str
    token_endpoint_auth_method: Literal["none"]


class DeviceProfile(WireObject):
    """One way to use the device flow."""

    profile: str
    pdpp_token_kind: str
    normal_mcp_setup: bool
    authorization_details_type: str | None = None
    scope: str | None = None
    required_parameters: Sequence[str] | None = None
    mcp_owner_bearer_rejected: bool | None = None


class AuthorizationServer(WireObject, kw_only=True):
    """The metadata of one of our origins; members of the PDPP profile begin with `pdpp_`."""

    component: ClassVar = "AuthorizationServer"

    issuer: Address
    authorization_endpoint: Address
    token_endpoint: Address
    pushed_authorization_request_endpoint: Address
    device_authorization_endpoint: Address
    revocation_endpoint: Address
    introspection_endpoint: Address
    jwks_uri: Address
    registration_endpoint: Address | None = None
    response_types_supported: Sequence[str]
    response_modes_supported: Sequence[str]
    require_pushed_authorization_requests: bool
    grant_types_supported: Sequence[GrantType]
    code_challenge_methods_supported: Sequence[str]
    token_endpoint_auth_methods_supported: Sequence[AuthMethod]
    revocation_endpoint_auth_methods_supported: Sequence[AuthMethod]
    token_endpoint_auth_signing_alg_values_supported: Sequence[str]
    revocation_endpoint_auth_signing_alg_values_supported: Sequence[str]
    introspection_endpoint_auth_methods_supported: Sequence[str]
    dpop_signing_alg_values_supported: Sequence[str]
    scopes_supported: Sequence[str]
    authorization_details_types_supported: Sequence[str]
    authorization_response_iss_parameter_supported: bool
    client_id_metadata_document_supported: bool
    protected_resources: Sequence[Address]
    service_documentation: Address
    ui_locales_supported: Sequence[str]
    pdpp_authorization_details_types_supported: Sequence[str]
    pdpp_registration_modes_supported: Sequence[str]
    pdpp_pre_registered_public_clients: Sequence[PublicClient]
    pdpp_provider_connect_capabilities: Sequence[str]
    pdpp_device_authorization_profiles_supported: Sequence[DeviceProfile]


def server_metadata(
    origin: str, configuration: Configuration, *, with_documents: bool
) -> AuthorizationServer:
    """The metadata document of one of our origins."""
    registers = configuration.dynamic_registration
    modes = {
        "client_id_metadata_document": with_documents,
        "dynamic": registers,
        "pre_registered_public": True,
    }
    return AuthorizationServer(
        issuer=origin,
        authorization_endpoint=f"{origin}/oauth/authorize",
        token_endpoint=f"{origin}/oauth/token",
        pushed_authorization_request_endpoint=f"{origin}/oauth/par",
        device_authorization_endpoint=f"{origin}/oauth/device_authorization",
        revocation_endpoint=f"{origin}/oauth/revoke",
        introspection_endpoint=f"{origin}/introspect",
        jwks_uri=f"{origin}{KEYS_PATH}",
        registration_endpoint=f"{origin}/oauth/register" if registers else None,
        response_types_supported=["code"],
        response_modes_supported=["query"],
        require_pushed_authorization_requests=False,
        grant_types_supported=GRANT_TYPES,
        code_challenge_methods_supported=["S256"],
        token_endpoint_auth_methods_supported=AUTH_METHODS,
        revocation_endpoint_auth_methods_supported=AUTH_METHODS,
        token_endpoint_auth_signing_alg_values_supported=SIGNING_ALGORITHMS,
        revocation_endpoint_auth_signing_alg_values_supported=SIGNING_ALGORITHMS,
        introspection_endpoint_auth_methods_supported=["client_secret_basic"],
        dpop_signing_alg_values_supported=PROOF_ALGORITHMS,
        scopes_supported=["pdpp:read", "offline_access"],
        authorization_details_types_supported=[DATA_ACCESS],
        authorization_response_iss_parameter_supported=True,
        client_id_metadata_document_supported=with_documents,
        protected_resources=[origin, f"{origin}/mcp"],
        service_documentation=f"{origin}/docs",
        ui_locales_supported=["en"],
        pdpp_authorization_details_types_supported=[DATA_ACCESS],
        pdpp_registration_modes_supported=[mode for mode, on in modes.items() if on],
        pdpp_pre_registered_public_clients=[
            PublicClient(
                client_id=client.client_id,
                client_name=client.client_name,
                token_endpoint_auth_method="none",  # noqa: S106 (a public client has no secret)
            )
            for client in configuration.pre_registered
            if not client.owner_profile
        ],
        pdpp_provider_connect_capabilities=[
            "owner_self_export",
            "cli_device_connect",
            "third_party_client_connect",
        ],
        pdpp_device_authorization_profiles_supported=DEVICE_PROFILES,
    )


DEVICE_PROFILES = (
    DeviceProfile(
        profile="grant_scoped_mcp",
        pdpp_token_kind="client",  # noqa: S106 (a kind of token)
        authorization_details_type=DATA_ACCESS,
        normal_mcp_setup=True,
        required_parameters=["client_id"],
    ),
    DeviceProfile(
        profile="trusted_owner_agent",
        pdpp_token_kind="owner",  # noqa: S106 (a kind of token)
        scope="pdpp:owner",
        normal_mcp_setup=False,
        mcp_owner_bearer_rejected=True,
    ),
)


class KeySet(WireObject):
    """The keys that what the server signs is verified with (RFC 7517)."""

    component: ClassVar = "KeySet"

    keys: Sequence[AnyObject]


class Metadata:
    """`GET /.well-known/oauth-authorization-server`, and the keys it names."""

    def __init__(
        self, configuration: Configuration, documents: Documents, receipts: ConsentReceipts
    ) -> None:
        self._configuration = configuration
        self._documents = documents
        self._receipts = receipts

    async def get(self, call: EndpointRequest) -> Response:
        """The document of the origin that was asked."""
        offered = self._documents.offered
        document = server_metadata(call.origin, self._configuration, with_documents=offered)
        return answer(document, headers=DOCUMENT)

    async def keys(self, _: EndpointRequest) -> Response:
        """The public keys that verify consent receipts."""
        public_keys = await anyio.to_thread.run_sync(self._receipts.public_keys)
        return answer(KeySet(keys=public_keys), headers=DOCUMENT)
