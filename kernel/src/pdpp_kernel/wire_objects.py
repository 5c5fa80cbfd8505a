"""Objects as they are sent, and the words in which their members are described.

Rule: a struct is what is encoded and what is published of it, so that neither can say more than the
other; objects are closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec
import orjson

Word = Annotated[str, msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Instant = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
Address = Annotated[str, msgspec.Meta(extra_json_schema={"format": "uri"})]
RoutePath = Annotated[str, msgspec.Meta(pattern="^/v1/")]
ConnectionId = Annotated[str, msgspec.Meta(pattern="^cin_[A-Za-z0-9_-]{1,40}$")]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Digest = Annotated[str, msgspec.Meta(pattern="^sha256:[0-9a-f]{64}$")]
Yes = Annotated[bool, msgspec.Meta(extra_json_schema={"enum": [True]})]
No = Annotated[bool, msgspec.Meta(extra_json_schema={"enum": [False]})]
RawObject = Annotated[
    msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object", "additionalProperties": True})
]
RawNumber = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "number"})]
AnyObject = Mapping[str, Any]


class WireObject(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An object of the wire.

    Shapes: a member whose default is `None` is left out rather than null; one without a default
        may be null if its type says so.  `component` is the name under which the OpenAPI document
        holds the object (`None`: wherever it occurs), `example` one that is shown there.
    """

    component: ClassVar[str | None] = None
    example: ClassVar[Mapping[str, object] | None] = None


ENCODE = msgspec.json.Encoder().encode  # one encoder is faster than one for each call


def raw_json(value: object) -> msgspec.Raw:
    """A stored value as JSON: written as stores write it, numbers above all."""
    return msgspec.Raw(orjson.dumps(value))
