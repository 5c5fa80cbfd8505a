"""A file of the resource server, read whole up to a size, or told to be larger.

Source: docs/contract/mcp-adapter.md 3.1, 3.4.
"""

import re

from pdpp_mcp_server.rs_client.answers import is_coding_known, request_id_of
from pdpp_mcp_server.rs_client.port import RsInvalidResponse, RsResponse
from pdpp_mcp_server.rs_client.senders import HttpAnswer


async def blob_of(response: HttpAnswer, max_bytes: int) -> RsResponse:
    """The bytes of a file, up to so many; none of one that is larger.

    Raises: RsInvalidResponse, where a part would be taken for the whole.
    """
    if not is_coding_known(response.headers):
        raise RsInvalidResponse
    total = _total_bytes(response)
    raw = bytearray()
    if total is None or total <= max_bytes:
        async for chunk in response.aiter_bytes():
            raw += chunk
            if len(raw) > max_bytes:
                break
    too_large = (total is not None and total > max_bytes) or len(raw) > max_bytes
    if not too_large and total is not None and len(raw) != total:
        raise RsInvalidResponse  # a part is never handed on as the whole
    return RsResponse(
        status=response.status_code,
        content=None if too_large else bytes(raw),
        total_bytes=total if total is not None else len(raw),
        content_type=response.headers.get("content-type"),
        request_id=request_id_of(response.headers, None),
    )


def is_empty_file(response: HttpAnswer) -> bool:
    """No range of an empty file can be satisfied; the answer says so with its size."""
    return response.status_code == 416 and response.headers.get("content-range") == "bytes */0"


def _total_bytes(response: HttpAnswer) -> int | None:
    ranged = re.fullmatch(r"bytes \d+-\d+/(\d+)", response.headers.get("content-range", ""))
    if ranged:
        return int(ranged[1])
    length = response.headers.get("content-length", "")
    is_plain = response.status_code == 200 and "content-encoding" not in response.headers
    return int(length) if is_plain and length.isdigit() else None
