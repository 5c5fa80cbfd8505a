"""The checks, gates and cleaning steps of the adapter, and the tests that hold each of them."""

from __future__ import annotations

from adapter.tests.mutations import Guard, hosted

arguments = ("arguments/test_arguments.py",)
filters = ("arguments/test_filters.py",)
expansion = ("tools/expansion/test_expansion.py",)
handles = ("handles/test_handles.py",)
cleaning = ("test_safe_text.py",)
admission = ("test_http.py",)
errors = ("test_errors.py",)
resources = ("test_resources.py",)
skills = ("test_sdk_skills.py",)
schema = ("tools/test_schema.py",)
windows = ("tools/test_read_record_field.py",)
aggregate = ("tools/test_aggregate.py",)
cursors = ("test_window_cursors.py",)
listeners = ("listeners/test_bounds.py",)

guards: tuple[Guard, ...] = (
    Guard("arguments", "_checked", arguments),
    Guard("arguments", "_integer", arguments),
    Guard("arguments", "_boolean", (*arguments, "tools/test_search.py")),
    Guard("arguments", "_number", arguments),
    Guard("arguments", "_string", arguments),
    Guard("arguments", "_list", arguments),
    Guard("safe_text", "is_unicode", arguments, "True", whole=True),
    Guard("safe_text", "is_unicode", filters, "True", whole=True),
    Guard("safe_text", "is_unicode", handles, "True", whole=True),
    Guard("arguments", "encode_filter", filters),
    Guard("arguments", "_check_key", filters),
    Guard("arguments", "_condition", filters),
    Guard("arguments", "_scalar", filters, "str(value)"),
    Guard("tools.expansion", "_relations", expansion),
    Guard("tools.expansion", "_limits", expansion),
    Guard("tools.expansion", "_limit", expansion),
    Guard("tools.expansion", "_is_relation", expansion, "True"),
    Guard("handles", "parse_id", handles),
    Guard("handles", "is_part", handles, "True"),
    Guard("handles", "_reads_back", handles, "True"),
    Guard("handles", "parse_window_handle", handles),
    Guard("handles", "parse_blob_handle", handles),
    Guard("handles", "_record", handles),
    Guard("handles", "_is_connection", handles, "True", whole=True),
    Guard("handles", "_decode", handles),
    Guard("handles", "_json_of", handles),
    Guard("window_cursors", "parse_cursor", cursors),
    Guard("window_cursors", "_body", cursors),
    Guard("safe_text", "clean", cleaning, "text", whole=True),
    Guard("safe_text", "_kept", cleaning, "True", whole=True),
    Guard("safe_text", "_kept", cleaning, "False", whole=True),
    Guard("safe_text", "one_line", cleaning, "text", whole=True),
    Guard("safe_text", "clean_json", cleaning, "clean(compact(value))", whole=True),
    Guard("safe_text", "escaped_json", cleaning, "compact(value)", whole=True),
    Guard("safe_text", "_is_base", cleaning, "True", whole=True),
    Guard("safe_text", "unlinked", cleaning, "text", whole=True),
    Guard("safe_text", "preview_json", cleaning, "clean_json(value)", whole=True),
    Guard("safe_text", "has_steering", cleaning, "False", whole=True),
    Guard("reads", "read", errors),
    Guard("followers", "_refused", listeners),
    Guard("listeners", "ListenerPlaces._check_room", listeners),
    Guard("listeners", "begin", listeners),
    Guard("listeners", "_honoured", listeners),
    Guard("listeners", "Subscribing.subscribe", listeners),
    Guard("http", "HostedApp.steps", admission, part=hosted),
    Guard("http", "HostedApp.identify", admission, part=hosted),
    Guard("resources", "_only_segment", resources),
    Guard("resources", "_stream", resources),
    Guard("resources", "_record", resources),
    Guard("resources", "_blob", resources),
    Guard("sdk_skills", "_get", skills),
    Guard("prompts", "Prompt.render", ("prompts/test_prompts.py",)),
    Guard("tools.aggregate", "aggregate", aggregate),
    Guard("tools.pages", "_first", ("tools/test_pages.py",)),
    Guard("tools.read_record_field", "read_window", windows),
    Guard("tools.schema", "_body", schema),
    Guard("tools.schema", "_stream", schema),
    Guard("tools.schema", "index_data", schema, "_reduced(catalog, reductions[-1][0])"),
    Guard("tools.fetch", "record_of", ("tools/test_fetch.py",)),
    Guard("tools.expansion", "pass_expand_gate", ("tools/expansion/test_gate.py",)),
    Guard("tools.query_records", "check_shape", ("tools/test_query_records.py",)),
    Guard("tools.query_records", "_require_capabilities", ("tools/test_query_records.py",)),
    Guard("arguments", "filter_query", ("tools/test_query_records.py",)),
    Guard("tools.aggregate", "_check_grouping", aggregate),
    Guard("tools.search", "check_shape", ("tools/test_search.py",)),
    Guard("tools.schema", "check_shape", schema),
    Guard("tools.schema", "_refuse_several", schema),
    Guard("tools.read_record_field", "_record", windows),
    Guard("tools.read_record_field", "_check_window", windows),
    Guard("tools.read_record_field", "_cursor", windows),
    Guard("tools.read_record_field", "_check_digest", windows),
    Guard("faces.text", "is_unusual", ("faces/test_text.py",), "False", whole=True),
    Guard("faces.text", "unused_nonce", ("faces/test_text.py",), "draw()", whole=True),
    Guard("faces.record_identity", "safe_url", ("faces/test_record_identity.py",), "value"),
    Guard("faces.hits", "repaired", ("faces/test_hits.py",), "text", whole=True),
    Guard("faces.truncation", "_looks_like_base64", ("faces/truncation/test_binary.py",), "True"),
)

beside = frozenset({"server.call_tool", "server.get_prompt"})
"""Names of tools and prompts that are none: refused by the protocol, tested at every door."""
