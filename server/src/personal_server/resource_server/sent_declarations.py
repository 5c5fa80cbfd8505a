"""What is sent to declare a source.  Source: docs/contract/resource-server.md 17.

Rule: it says less than the parser checks (declared names, unique ids) and never more; what a
struct `takes_more` of is kept and not interpreted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from pdpp_kernel.declaration import Cardinality, KeySide, Semantics
from pdpp_kernel.operators import RangeOperator
from pdpp_kernel.wire_objects import AnyObject, WireObject
from personal_server.domain import declaration_document
from personal_server.resource_server.envelopes import ShownSource, StreamLabel

Name = Annotated[str, msgspec.Meta(pattern=f"^{declaration_document.STREAM_NAME.pattern}$")]
Names = Sequence[Name]
Version = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
ChildCount = Annotated[int, msgspec.Meta(ge=1, le=declaration_document.MAX_CHILDREN)]


class SentView(WireObject, kw_only=True):
    """A named projection."""

    id: str
    label: str
    fields: Names
    description: Any = None


class SentRelationship(WireObject, kw_only=True):
    """A relation to another stream."""

    name: Name
    stream: Name
    foreign_key: Name
    cardinality: Cardinality
    foreign_key_on: KeySide | None = None
    description: Any = None


class SentExpansion(WireObject):
    """A relation that reads may follow."""

    name: Name
    default_limit: ChildCount | None = None
    max_limit: Annotated[int, msgspec.Meta(ge=1)] | None = None


class SentSearch(WireObject):
    """The fields that are searched."""

    lexical_fields: Names | None = None
    semantic_fields: Names | None = None


class SentAggregations(WireObject):
    """The metrics of a stream, and the fields they take."""

    count: bool | None = None
    sum: Names | None = None
    min: Names | None = None
    max: Names | None = None
    count_distinct: Names | None = None
    group_by: Names | None = None
    group_by_time: Names | None = None


class SentQuery(WireObject):
    """What reads of a stream may ask for."""

    range_filters: Mapping[str, Sequence[RangeOperator]] | None = None
    expand: Sequence[SentExpansion] | None = None
    search: SentSearch | None = None
    aggregations: SentAggregations | None = None


class SentSelection(WireObject):
    """What a client may choose from a stream."""

    takes_more: ClassVar = True

    fields: bool | None = None
    resources: bool | None = None


class SentStream(WireObject, kw_only=True):
    """A stream of a source."""

    takes_more: ClassVar = True

    name: Name
    semantics: Literal[Semantics.MUTABLE, Semantics.APPEND_ONLY, "append"]
    schema: AnyObject
    primary_key: Annotated[
        Sequence[Name],
        msgspec.Meta(min_length=1, max_length=declaration_document.MAX_KEY_FIELDS),
    ]
    selection: SentSelection
    display: StreamLabel | None = None
    cursor_field: Name | None = None
    consent_time_field: Name | None = None
    views: Sequence[SentView] | None = None
    relationships: Sequence[SentRelationship] | None = None
    query: SentQuery | None = None


class SentRefreshPolicy(WireObject):
    """How often a source is collected."""

    takes_more: ClassVar = True

    maximum_staleness_seconds: Annotated[int, msgspec.Meta(ge=1)] | None = None


class SentCapabilities(WireObject):
    """What a source can do."""

    takes_more: ClassVar = True

    refresh_policy: SentRefreshPolicy | None = None


class SentName(WireObject):
    """How a source is shown."""

    name: str | None = None
    detail: str | None = None


class SentPublisher(WireObject):
    """Who publishes a source."""

    takes_more: ClassVar = True

    id: str


class SentDeclaration(WireObject, kw_only=True):
    """A source and its streams."""

    takes_more: ClassVar = True

    protocol_version: Annotated[
        Any, msgspec.Meta(extra_json_schema={"const": declaration_document.PROTOCOL_VERSION})
    ]
    connector_key: Annotated[
        str, msgspec.Meta(pattern=f"^{declaration_document.CONNECTOR_KEY.pattern}$")
    ]
    streams: Annotated[Sequence[SentStream], msgspec.Meta(min_length=1)]
    source: ShownSource | None = None
    connector_id: str | None = None
    declaration_version: Version | None = None
    version: Version | None = None
    display: SentName | None = None
    display_name: str | None = None
    publisher: SentPublisher | None = None
    capabilities: SentCapabilities | None = None
    selection_presets: Sequence[AnyObject] | None = None
    extensions: AnyObject | None = None
