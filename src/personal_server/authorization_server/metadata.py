"""Authorization server metadata (RFC 8414).  Source: docs/contract/authorization-server.md 2.1."""

from __future__ import annotations

from starlette.responses import Response

from personal_server.authorization_server.configuration import Configuration
from personal_server.authorization_server.endpoint_requests import EndpointRequest
from personal_server.consent.client_registration import GRANT_TYPES
from personal_server.consent.selections import DATA_ACCESS
from personal_server.web.responses import DOCUMENT, answer

SIGNING_ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
AUTH_METHODS = ("none", "private_key_jwt")


def server_metadata(origin: str, configuration: Configuration) -> dict[str, object]:
    """The metadata document of one of our origins."""
    document: dict[str, object] = {
        "issuer": origin,
        "authorization_endpoint": f"{origin}/oauth/authorize",
        "token_endpoint": f"{origin}/oauth/token",
        "pushed_authorization_request_endpoint": f"{origin}/oauth/par",
        "device_authorization_endpoint": f"{origin}/oauth/device_authorization",
        "revocation_endpoint": f"{origin}/oauth/revoke",
        "introspection_endpoint": f"{origin}/introspect",
        "registration_endpoint": f"{origin}/oauth/register",
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "require_pushed_authorization_requests": False,
        "grant_types_supported": [*GRANT_TYPES],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": [*AUTH_METHODS],
        "revocation_endpoint_auth_methods_supported": [*AUTH_METHODS],
        "token_endpoint_auth_signing_alg_values_supported": [*SIGNING_ALGORITHMS],
        "revocation_endpoint_auth_signing_alg_values_supported": [*SIGNING_ALGORITHMS],
        "introspection_endpoint_auth_methods_supported": ["client_secret_basic"],
        "scopes_supported": ["pdpp:read", "offline_access"],
        "authorization_details_types_supported": [DATA_ACCESS],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": configuration.client_metadata_documents,
        "protected_resources": [origin, f"{origin}/mcp"],
        "service_documentation": f"{origin}/docs",
        "ui_locales_supported": ["en"],
        **_profile(configuration),
    }
    if not configuration.dynamic_registration:
        del document["registration_endpoint"]
    return document


def _profile(configuration: Configuration) -> dict[str, object]:
    """The members of the PDPP profile."""
    modes = {
        "client_id_metadata_document": configuration.client_metadata_documents,
        "dynamic": configuration.dynamic_registration,
        "pre_registered_public": True,
    }
    return {
        "pdpp_authorization_details_types_supported": [DATA_ACCESS],
        "pdpp_registration_modes_supported": [mode for mode, on in modes.items() if on],
        "pdpp_pre_registered_public_clients": [
            {
                "client_id": client.client_id,
                "client_name": client.client_name,
                "token_endpoint_auth_method": "none",
            }
            for client in configuration.pre_registered
            if not client.owner_profile
        ],
        "pdpp_provider_connect_capabilities": [
            "owner_self_export",
            "cli_device_connect",
            "third_party_client_connect",
        ],
        "pdpp_device_authorization_profiles_supported": [
            {
                "profile": "grant_scoped_mcp",
                "pdpp_token_kind": "client",
                "authorization_details_type": DATA_ACCESS,
                "normal_mcp_setup": True,
                "required_parameters": ["client_id"],
            },
            {
                "profile": "trusted_owner_agent",
                "pdpp_token_kind": "owner",
                "scope": "pdpp:owner",
                "normal_mcp_setup": False,
                "mcp_owner_bearer_rejected": True,
            },
        ],
    }


class Metadata:
    """`GET /.well-known/oauth-authorization-server`."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    async def get(self, call: EndpointRequest) -> Response:
        """The document of the origin that was asked."""
        return answer(server_metadata(call.origin, self._configuration), headers=DOCUMENT)
