import jsonschema_rs
import pytest

from server.tests.resource_server.living import described

COMPONENTS = described().document["components"]
SHOWN = {
    name: example
    for name, schema in COMPONENTS["schemas"].items()
    for example in schema.get("examples", ())
}


def test_what_readers_ask_for_first_has_an_example() -> None:
    assert {"Error", "Record", "RecordList", "FieldWindow", "Aggregation"} <= set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_each_example_fits_its_schema(name: str) -> None:
    schema = {"$ref": f"#/components/schemas/{name}", "components": COMPONENTS}
    jsonschema_rs.Draft202012Validator(schema, validate_formats=True).validate(SHOWN[name])
