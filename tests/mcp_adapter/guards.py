"""The checks, gates and cleaning steps of the adapter, and the tests that hold each of them."""

from __future__ import annotations

from tests.mcp_adapter.mutations import Guard

arguments = ("test_arguments.py",)
filters = ("test_filters.py",)
expansion = ("test_expansion.py",)
handles = ("test_handles.py",)
cleaning = ("test_cleaning.py",)
errors = ("test_errors.py",)
resources = ("test_resources.py",)
schema = ("tools/test_schema.py",)
windows = ("tools/test_read_record_field.py",)
aggregate = ("tools/test_aggregate.py",)
cursors = ("test_window_cursors.py",)

guards: tuple[Guard, ...] = (
    Guard("arguments", "_checked", arguments),
    Guard("arguments", "_integer", arguments),
    Guard("arguments", "_string", arguments),
    Guard("arguments", "_list", arguments),
    Guard("arguments", "is_encodable", arguments, "True", whole=True),
    Guard("filters", "encode_filter", filters),
    Guard("filters", "_check_key", filters),
    Guard("filters", "_condition", filters),
    Guard("filters", "_scalar", filters, "str(value)"),
    Guard("filters", "_is_text", filters, "True", whole=True),
    Guard("expansion", "_relations", expansion),
    Guard("expansion", "_limits", expansion),
    Guard("expansion", "_limit", expansion),
    Guard("expansion", "_is_relation", expansion, "True"),
    Guard("expansion", "refuse_without_capability", expansion),
    Guard("handles", "parse_id", handles),
    Guard("handles", "is_part", handles, "True"),
    Guard("handles", "_is_unicode", handles, "True", whole=True),
    Guard("handles", "_reads_back", handles, "True"),
    Guard("handles", "parse_window_handle", handles),
    Guard("handles", "parse_blob_handle", handles),
    Guard("handles", "_record", handles),
    Guard("handles", "_is_connection", handles, "True", whole=True),
    Guard("handles", "_decode", handles),
    Guard("handles", "_json_of", handles),
    Guard("window_cursors", "parse_cursor", cursors),
    Guard("window_cursors", "_body", cursors),
    Guard("cleaning", "clean", cleaning, "text", whole=True),
    Guard("cleaning", "_kept", cleaning, "True", whole=True),
    Guard("cleaning", "_kept", cleaning, "False", whole=True),
    Guard("cleaning", "one_line", cleaning, "text", whole=True),
    Guard("cleaning", "clean_json", cleaning, "clean(compact(value))", whole=True),
    Guard("cleaning", "escaped_json", cleaning, "compact(value)", whole=True),
    Guard("cleaning", "has_steering", cleaning, "False", whole=True),
    Guard("reading", "read", errors),
    Guard("resources", "_only_segment", resources),
    Guard("resources", "_stream", resources),
    Guard("resources", "_record", resources),
    Guard("resources", "_blob", resources),
    Guard("prompts", "Prompt.render", ("test_prompts.py",)),
    Guard("tools.aggregate", "aggregate", aggregate),
    Guard("tools.paging", "_first", ("tools/test_paging.py",)),
    Guard("tools.read_record_field", "read_window", windows),
    Guard("tools.schema", "_body", schema),
    Guard("tools.schema", "_stream", schema),
    Guard("tools.schema", "index_data", schema, "_reduced(catalog, reductions[-1])"),
    Guard("tools.identity", "record_of", ("tools/test_identity.py",)),
    Guard("tools.gate", "pass_expand_gate", ("tools/test_gate.py",)),
    Guard("tools.query_records", "check_shape", ("tools/test_query_records.py",)),
    Guard("tools.query_records", "filter_query", ("tools/test_query_records.py",)),
    Guard("tools.aggregate", "_contradiction", aggregate),
    Guard("tools.aggregate", "check_shape", aggregate),
    Guard("tools.search", "check_shape", ("tools/test_search.py",)),
    Guard("tools.schema", "check_shape", schema),
    Guard("tools.schema", "_refuse_several", schema),
    Guard("tools.read_record_field", "_record", windows),
    Guard("tools.read_record_field", "_check_window", windows),
    Guard("tools.read_record_field", "_cursor", windows),
    Guard("tools.read_record_field", "_check_digest", windows),
    Guard("faces.text", "is_unusual", ("faces/test_text.py",), "False", whole=True),
    Guard("faces.text", "unused_nonce", ("faces/test_text.py",), "draw()", whole=True),
    Guard("evidence.naming", "safe_url", ("evidence/test_naming.py",), "value"),
    Guard("evidence.highlights", "repaired", ("evidence/test_highlights.py",), "text", whole=True),
    Guard("evidence.binary", "_looks_like_base64", ("evidence/test_binary.py",), "True"),
)

beside = frozenset({"server.call_tool", "server.get_prompt"})
"""Names of tools and prompts that are none: refused by the protocol, tested at every door."""
