"""The shape of a source declaration as a request body.  Source: RS contract 17.

Rule: it says less than the parser checks (declared names, unique ids) and never more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from personal_server.domain import declaration_document
from personal_server.domain.declaration import RANGE_OPERATORS, Cardinality, Semantics
from personal_server.resource_server.shapes import (
    ANYTHING,
    FLAG,
    MAP,
    SOURCE,
    TEXT,
    Shape,
    array,
    closed,
    constant,
    map_of,
    one_of,
)

_VERSION: Shape = {"type": "string", "minLength": 1, "maxLength": 64}
_NAME: Shape = {"type": "string", "pattern": f"^{declaration_document.STREAM_NAME.pattern}$"}
_NAMES = array(_NAME)
_COUNT: Shape = {"type": "integer", "minimum": 1, "maximum": declaration_document.MAX_CHILDREN}


def _kept(names: Iterable[str]) -> Mapping[str, Shape]:
    """Members that are kept and not interpreted."""
    return dict.fromkeys(sorted(names), ANYTHING)


_VIEW = closed({"id": TEXT, "label": TEXT, "fields": _NAMES}, {"description": ANYTHING})
_RELATIONSHIP = closed(
    {
        "name": _NAME,
        "stream": _NAME,
        "foreign_key": _NAME,
        "cardinality": one_of(*[c.value for c in Cardinality]),
    },
    {"foreign_key_on": one_of("target", "self"), "description": ANYTHING},
)
_AGGREGATIONS = closed(
    {},
    {
        "count": FLAG,
        **dict.fromkeys(
            ("sum", "min", "max", "count_distinct", "group_by", "group_by_time"), _NAMES
        ),
    },
)
_QUERY = closed(
    {},
    {
        "range_filters": map_of(array(one_of(*RANGE_OPERATORS))),
        "expand": array(closed({"name": _NAME}, {"default_limit": _COUNT, "max_limit": _COUNT})),
        "search": closed({}, {"lexical_fields": _NAMES, "semantic_fields": _NAMES}),
        "aggregations": _AGGREGATIONS,
    },
)
_STREAM = closed(
    {
        "name": _NAME,
        "semantics": one_of(*[s.value for s in Semantics]),
        "display": closed({"label": TEXT}, {"detail": TEXT}),
        "schema": MAP,
        "primary_key": array(_NAME, minItems=1, maxItems=declaration_document.MAX_KEY_FIELDS),
        "selection": closed({}, {"fields": FLAG, "resources": FLAG}),
    },
    {
        "cursor_field": _NAME,
        "consent_time_field": _NAME,
        "views": array(_VIEW),
        "relationships": array(_RELATIONSHIP),
        "query": _QUERY,
        **_kept(declaration_document.STREAM_COLLECTION_MEMBERS),
    },
)
_REFRESH = closed(
    {},
    {
        "maximum_staleness_seconds": {"type": "integer", "minimum": 1},
        **_kept(declaration_document.REFRESH_MEMBERS),
    },
)
DECLARATION_BODY: Shape = {
    **closed(
        {
            "protocol_version": constant(declaration_document.PROTOCOL_VERSION),
            "connector_key": {
                "type": "string",
                "pattern": f"^{declaration_document.CONNECTOR_KEY.pattern}$",
            },
            "streams": array(_STREAM, minItems=1),
        },
        {
            "source": SOURCE,
            "connector_id": TEXT,
            "declaration_version": _VERSION,
            "version": _VERSION,
            "display": closed({}, {"name": TEXT, "detail": TEXT}),
            "display_name": TEXT,
            "publisher": closed({"id": TEXT}, {"name": ANYTHING, "uri": ANYTHING}),
            "capabilities": closed(
                {},
                {
                    "refresh_policy": _REFRESH,
                    "human_interaction": ANYTHING,
                    "public_listing": ANYTHING,
                },
            ),
            "selection_presets": array(MAP),
            "extensions": MAP,
            **_kept(declaration_document.COLLECTION_MEMBERS),
        },
    ),
    "allOf": [
        {"anyOf": [{"required": ["source"]}, {"required": ["connector_id"]}]},
        {"anyOf": [{"required": ["declaration_version"]}, {"required": ["version"]}]},
        {"anyOf": [{"required": ["display"]}, {"required": ["display_name"]}]},
    ],
}
