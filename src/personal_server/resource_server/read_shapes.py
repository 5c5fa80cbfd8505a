"""Examples of answers that are no structs yet."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, Mapping[str, object]] = {
    "Error": {
        "error": {
            "type": "permission_error",
            "code": "field_not_granted",
            "message": "Field 'salary' is not part of this grant.",
            "param": "fields",
            "request_id": "req_5b1c0d9e7a3f4c2b8d6e1f00",
        }
    },
}
