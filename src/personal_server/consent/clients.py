"""What is known of clients, and how they are named to the owner.

Rule: a client is asked who it is, never what it may do.  Source: AS contract 3.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from urllib.parse import urlsplit

PRE_REGISTERED, DOCUMENT, DYNAMIC, LOCAL = (
    "pre_registered",
    "client_id_metadata_document",
    "dynamic",
    "local",
)
UNNAMED = "Unnamed app"
AUTHORIZATION_CODE, REFRESH_TOKEN = "authorization_code", "refresh_token"
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
GRANT_TYPES = (AUTHORIZATION_CODE, REFRESH_TOKEN, DEVICE_CODE)
OWNER_PROFILE = "pdpp:owner"
"""Among the grant types of a pre-registered client: it may ask for the owner profile."""

CLI_CLIENT, OWNER_CLI_CLIENT = "pdpp-cli", "pdpp-owner-cli"
DISPLAY_URIS = ("uri", "logo_uri", "policy_uri", "tos_uri")


def client_display(
    client_id: str, name: str, display: Mapping[str, object], asked: Mapping[str, object] | None
) -> dict[str, object]:
    """How a client is shown and bound: its registered name and addresses, else its own words.

    Source: AS contract 4.1 (`client_display` counts only where the registration gives no name).
    """
    if name:
        return {"name": name, **display}
    if asked and asked.get("name"):
        return {**asked, **display}
    return {"name": urlsplit(client_id).hostname or UNNAMED, **display}


def local_client_id(name: str) -> str:
    """The id of a client that the owner made on the machine of the store."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60]
    return f"local_{slug or 'client'}"
