"""The schema document of the recording server."""

from __future__ import annotations

import json
from dataclasses import dataclass

from adapter.tests.fake_sources import Source
from adapter.tests.fake_wire import Answer, Json, Request


@dataclass(frozen=True, slots=True)
class Catalog:
    """What a token of one kind sees of declared streams."""

    kind: str
    declarations: dict[str, Json]
    unavailable: list[Json]

    def answer(self, matching: list[Source], request: Request) -> Answer:
        """The schema document over the matching sources, whole or compact."""
        streams = request.values("stream")
        compact = request.values("view") == ["compact"]
        keys = list(dict.fromkeys(s.connector_key for s in matching))
        connectors = [
            self._connector(key, [s for s in matching if s.connector_key == key], streams, compact)
            for key in keys
        ]
        connectors = [connector for connector in connectors if connector["streams"]]
        body: Json = {
            "object": "schema",
            "bearer": {"token_kind": self.kind, "scope": "grant", "client_id": "planner"},
            "connector_count": len(connectors),
            "stream_count": sum(len(c["streams"]) for c in connectors),
            "unavailable_connections": self.unavailable,
            "connectors": connectors,
            "links": {"self": "/v1/schema"},
            "meta": {"count": {"kind": "none"}, "warnings": []},
        }
        return Answer(200, {**body, "detail": "compact"} if compact else body)

    def _connector(
        self, key: str, sources: list[Source], streams: list[str], compact: bool
    ) -> Json:
        names = dict.fromkeys(n for s in sources for n in s.streams if not streams or n in streams)
        rows = [
            self._row(name, [s for s in sources if name in s.streams], compact) for name in names
        ]
        connector: Json = {
            "object": "connector",
            "connector_key": key,
            "connector_id": key,
            "display_name": key.title(),
            "stream_count": len(rows),
        }
        if compact:
            sets = [json.dumps(row["granted_connections"]) for row in rows]
            if sets:
                common = max(sets, key=sets.count)
                connector["granted_connections"] = json.loads(common)
                for row, own in zip(rows, sets, strict=True):
                    if own == common:
                        del row["granted_connections"]
        return {**connector, "streams": rows}

    def _row(self, name: str, sources: list[Source], compact: bool) -> Json:
        declared = self.declarations[name]
        granted = [
            {
                "connection_id": s.connection_id,
                **({"display_name": s.display_name} if s.display_name else {}),
                **({"grant_id": s.grant_id} if self.kind == "mcp_package" else {}),
            }
            for s in sources
        ]
        if compact:
            return {
                "name": name,
                "primary_key": ["id"],
                "cursor_field": "sent_at",
                "consent_time_field": "sent_at",
                "sort": {"fields": ["sent_at"], "default": "-sent_at"},
                "count": ["none", "estimated", "exact"],
                "views": [{"id": "summary", "fields": ["id", "subject"]}],
                "search": {
                    "modes": ["lexical"],
                    "lexical_fields": ["subject"],
                    "semantic_fields": [],
                },
                "aggregate": {"metrics": ["count", "max", "min"]},
                "limits": {"default_limit": 25, "max_limit": 100},
                "field_capabilities": declared["flags"],
                "expand_capabilities": [
                    {k: v for k, v in e.items() if k != "child_parent_key_field"}
                    for e in declared["expand"]
                ],
                "granted_connections": granted,
            }
        return {
            "object": "stream_metadata",
            "name": name,
            "primary_key": ["id"],
            "cursor_field": "sent_at",
            "consent_time_field": "sent_at",
            "semantics": "mutable_state",
            "schema": {"type": "object", "properties": declared["properties"]},
            "views": [{"id": "summary", "fields": ["id", "subject"]}],
            "sort": {"fields": ["sent_at"], "default": "-sent_at"},
            "count": ["none", "estimated", "exact"],
            "search": {"modes": ["lexical"], "lexical_fields": ["subject"], "semantic_fields": []},
            "aggregate": {"metrics": ["count", "max", "min"]},
            "limits": {"default_limit": 25, "max_limit": 100},
            "field_capabilities": declared["capabilities"],
            "expand_capabilities": declared["expand"],
            "granted_connections": granted,
        }
