from pdpp_mcp_server.schema_document import binary_fields


def test_bytes_are_declared_by_type_or_encoding_in_either_form() -> None:
    compact = {"field_capabilities": {"a": "t=blob", "b": "t=binary|null,eq", "c": "t=string"}}
    assert binary_fields(compact) == ["a", "b"]
    properties = {
        "a": {"type": "object", "x_pdpp_type": "blob"},
        "b": {"type": "string", "contentEncoding": "base64"},
        "c": {"type": "string"},
    }
    full = {"field_capabilities": {"c": {"granted": True}}, "schema": {"properties": properties}}
    assert sorted(binary_fields(full)) == ["a", "b"]
