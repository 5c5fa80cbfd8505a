"""Capability flags of a field: one short string, and the legend that explains every flag shown.

Source: resource-server contract 6.4; MCP adapter contract 8.2, 10.1.
"""

import re
from collections.abc import Iterable

from personal_server.rs_client.json_values import Json, as_list, as_object, as_text, is_list

range_order = ("gte", "gt", "lte", "lt")
aggregation_order = ("count_distinct", "group_by", "group_by_time", "max", "min", "sum")
legend = {
    "t": "type",
    "role": "meaning",
    "eq": "exact filter",
    "r": "range operators",
    "lex": "lexical search",
    "sem": "semantic search",
    "a": "aggregations",
    "g=false": "not granted",
    "NAME=unusable:WHY": "declared but not usable",
    "declared": "projection only",
}
binary_types = frozenset({"blob", "binary"})
binary_encodings = frozenset({"base64", "base64url"})
reserved = re.compile(r"[;,\[\]{}=]|\s+")


def flags_of(capability: object, schema: object) -> str:
    """The flags of one field, from the full form or as sent."""
    if isinstance(capability, str):
        return capability
    facts = as_object(capability)
    flags = [f"t={kind}" for kind in [_type(facts, as_object(schema))] if kind]
    role = as_text(facts.get("role"))
    if role:
        flags.append(f"role={_plain(role)}")
    if facts.get("granted") is False:
        flags.append("g=false")
    else:
        flags += _usable(facts)
    return ",".join(flags) or "declared"


def _type(facts: Json, schema: Json) -> str | None:
    own = as_object(facts.get("schema")) or schema
    kind = facts.get("type") or own.get("x_pdpp_type") or own.get("type")
    if is_list(kind):
        return "|".join(_plain(str(item)) for item in kind)
    return _plain(kind) if isinstance(kind, str) else None


def _plain(value: str) -> str:
    return reserved.sub("_", value)


def _usable(facts: Json) -> list[str]:
    flags: list[str] = []
    if _is_usable(facts.get("exact_filter")):
        flags.append("eq")
    ranges = as_object(facts.get("range_filter"))
    if _is_usable(ranges):
        named = [name for name in range_order if name in as_list(ranges.get("operators"))]
        flags.append("r=" + "|".join(named))
    for short, name in (("lex", "lexical_search"), ("sem", "semantic_search")):
        flags += _search_flag(short, as_object(facts.get(name)))
    sums = as_object(facts.get("aggregation"))
    kinds = [name for name in aggregation_order if _is_usable(sums.get(name))]
    return [*flags, *(["a=" + "|".join(kinds)] if kinds else [])]


def _is_usable(capability: object) -> bool:
    return capability is True or as_object(capability).get("usable") is True


def _search_flag(short: str, capability: Json) -> list[str]:
    if capability.get("usable") is True:
        return [short]
    if capability.get("declared") is True:
        return [f"{short}=unusable:{_plain(as_text(capability.get('reason')) or 'unknown')}"]
    return []


def split_flags(text: str) -> list[tuple[str, str]]:
    """The flags of a field as (name, value) pairs."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    return [(name, value) for name, _, value in pairs]


def binary_fields(row: Json) -> list[str]:
    """The fields of a stream row, compact or full, whose declaration says that they hold bytes."""
    schemas = as_object(as_object(row.get("schema")).get("properties"))
    stated = as_object(row.get("field_capabilities"))
    return [
        name
        for name in dict.fromkeys((*stated, *schemas))
        if _is_binary(stated.get(name), as_object(schemas.get(name)))
    ]


def _is_binary(capability: object, schema: Json) -> bool:
    own = as_object(as_object(capability).get("schema")) or schema
    if own.get("contentEncoding") in binary_encodings:
        return True
    kinds = {
        kind
        for name, value in split_flags(flags_of(capability, schema))
        if name == "t"
        for kind in value.split("|")
    }
    return bool(kinds & binary_types)


def aggregations_in(text: str) -> list[str]:
    """The aggregations a field's flags name."""
    return [kind for name, value in split_flags(text) if name == "a" for kind in value.split("|")]


def legend_for(texts: Iterable[str]) -> dict[str, str]:
    """The legend, with an entry for every flag of these texts that it does not know."""
    found = dict(legend)
    for text in texts:
        for name, _ in split_flags(text):
            if name not in {"t", "role", "eq", "r", "lex", "sem", "a", "g", "declared"}:
                found.setdefault(name, "as stated by the server")
    return found
