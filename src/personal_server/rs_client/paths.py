"""Raw path segments and parameters → the bytes of a request target.

Source: MCP adapter contract 3.1, resource-server contract 9.1.
"""

from base64 import urlsafe_b64encode
from urllib.parse import quote

from personal_server.rs_client.port import Path, Query

record_position = 4
"""Where a record key stands in /v1/streams/{stream}/records/{key}."""


def encode_path(path: Path) -> str:
    """Encode raw segments so that no server or proxy normalizes them.

    Raises: ValueError for an empty segment and for `.` or `..` anywhere but as a record key.
    """
    return "".join(f"/{_encode_segment(path, position)}" for position in range(len(path)))


def encode_query(query: Query) -> str:
    """Encode parameters in their order; names may repeat."""
    return "&".join(f"{quote(name, safe='[]')}={quote(value, safe='')}" for name, value in query)


def _encode_segment(path: Path, position: int) -> str:
    segment = path[position]
    if not segment:
        raise ValueError("empty path segment")
    if _is_record_key(path, position):
        segment = _armoured(segment)
    elif segment in {".", ".."}:
        raise ValueError("relative path segment")
    encoded = quote(segment, safe="")
    return encoded.replace(".", "%2E") if ".." in encoded else encoded


def _is_record_key(path: Path, position: int) -> bool:
    return position == record_position and path[1:2] == ("streams",) and path[3:4] == ("records",)


def _armoured(key: str) -> str:
    if key not in {".", ".."} and not key.startswith("~b64."):
        return key
    return "~b64." + urlsafe_b64encode(key.encode()).decode().rstrip("=")
