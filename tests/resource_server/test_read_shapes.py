import jsonschema_rs
import pytest

from personal_server.resource_server.read_shapes import EXAMPLES
from tests.resource_server.living import Living


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_fits_its_shape(name: str) -> None:
    components = Living().described.document["components"]
    schema = {"$ref": f"#/components/schemas/{name}", "components": components}
    jsonschema_rs.Draft202012Validator(schema, validate_formats=True).validate(EXAMPLES[name])
