import copy
import hashlib
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from pdpp_kernel.declaration import Cardinality, Semantics
from pdpp_kernel.errors import InvalidDeclaration
from pdpp_kernel.values import ValueKind
from personal_server.domain.declaration_document import digest_of, parse_declaration

JOURNAL = json.loads((Path(__file__).parent.parent / "samples" / "journal.json").read_text())

Json = dict[str, Any]


def journal() -> Json:
    return copy.deepcopy(JOURNAL)


def faults(document: object) -> list[dict[str, str]]:
    with pytest.raises(InvalidDeclaration) as caught:
        parse_declaration(json.dumps(document).encode())
    return cast("list[dict[str, str]]", caught.value.members["errors"])


def fault_paths(change: Callable[[Json], object]) -> set[str]:
    document = journal()
    change(document)
    return {fault["path"] for fault in faults(document)}


def test_the_example_of_the_contract_is_a_declaration() -> None:
    declaration = parse_declaration(json.dumps(JOURNAL).encode())
    entries = declaration.streams["entries"]
    assert declaration.connector_key == "journal"
    assert declaration.maximum_staleness_seconds == 86_400
    assert entries.semantics is Semantics.MUTABLE
    assert entries.title_field == "title"
    assert entries.event_time_field == "created_at"
    assert entries.floor == ("id", "created_at")
    assert entries.range_filters["word_count"] == ("gte", "lte")
    assert [e.relationship.name for e in entries.expansions] == ["volume", "attachments"]
    assert entries.expansions[0].relationship.cardinality is Cardinality.HAS_ONE
    assert declaration.streams["attachments"].blob_fields == ("blob_ref",)


def test_properties_have_the_kind_of_their_type_and_format() -> None:
    properties = parse_declaration(JOURNAL).streams["entries"].properties
    assert {name: p.kind for name, p in properties.items()} == {
        "id": ValueKind.STRING,
        "volume_id": ValueKind.STRING,
        "title": ValueKind.STRING,
        "body": ValueKind.STRING,
        "labels": None,
        "word_count": ValueKind.INTEGER,
        "pinned": ValueKind.BOOLEAN,
        "created_at": ValueKind.INSTANT,
    }
    assert properties["volume_id"].nullable


def test_a_source_has_one_name() -> None:
    assert fault_paths(lambda raw: raw.update(display_name="Another")) == {"/display_name"}
    named = parse_declaration(JOURNAL | {"display_name": JOURNAL["display"]["name"]})
    assert named.display_name == "Journal"


@pytest.mark.parametrize(("field", "is_time"), [("created_at", True), ("title", False)])
def test_records_are_limited_in_time_by_a_time(field: str, *, is_time: bool) -> None:
    document = journal()
    document["streams"][0]["consent_time_field"] = field
    if is_time:
        assert parse_declaration(document).streams["entries"].consent_time_field == field
    else:
        assert "/streams/0/consent_time_field" in {each["path"] for each in faults(document)}


def test_white_space_is_no_other_content() -> None:
    spaced = parse_declaration(json.dumps(JOURNAL, indent=3).encode())
    assert spaced.digest == parse_declaration(JOURNAL).digest


def test_the_connector_manifest_spelling_means_the_same() -> None:
    manifest = journal()
    source = manifest.pop("source")
    manifest |= {"connector_id": source["id"], "version": manifest.pop("declaration_version")}
    manifest |= {"display_name": manifest.pop("display")["name"], "setup": {"modality": "any"}}
    manifest |= {"description": "x", "runtime_requirements": {}}
    manifest["streams"][0] |= {"coverage_strategy": "full_inventory", "description": "y"}
    parsed = parse_declaration(manifest)
    plain = parse_declaration(JOURNAL)
    assert (parsed.source_kind, parsed.source_id) == (plain.source_kind, plain.source_id)
    assert (parsed.version, parsed.display_name) == (plain.version, plain.display_name)
    assert parsed.raw["setup"] == {"modality": "any"}


def stream(document: Json, index: int = 0) -> Json:
    return document["streams"][index]


def shared(document: Json, key: str) -> None:
    """Entries related to entries of the same value."""
    relation = stream(document)["relationships"][1]
    relation.update(stream="entries", foreign_key=key, foreign_key_on="both")


BROKEN: list[tuple[Callable[[Json], object], str]] = [
    (lambda d: d.update(protocol_version="9"), "/protocol_version"),
    (lambda d: d.pop("connector_key"), "/connector_key"),
    (lambda d: d.update(connector_key="Journal"), "/connector_key"),
    (lambda d: d["source"].update(kind="other"), "/source/kind"),
    (lambda d: d["source"].update(id="journal"), "/source/id"),
    (lambda d: d["source"].update(more=1), "/source/more"),
    (lambda d: d.update(connector_id="https://other.example/x"), "/connector_id"),
    (lambda d: d.pop("declaration_version"), "/declaration_version"),
    (lambda d: d.update(declaration_version="v" * 65), "/declaration_version"),
    (lambda d: d.pop("display"), "/display"),
    (lambda d: d["display"].pop("name"), "/display/name"),
    (lambda d: d["display"].update(icon="x"), "/display/icon"),
    (
        lambda d: d["capabilities"]["refresh_policy"].update(maximum_staleness_seconds=0),
        "/capabilities/refresh_policy/maximum_staleness_seconds",
    ),
    (lambda d: d.update(streams=[]), "/streams"),
    (lambda d: d.update(extensions=[]), "/extensions"),
    (lambda d: d["streams"].append(copy.deepcopy(stream(d))), "/streams/3/name"),
    (lambda d: stream(d).update(name="-x"), "/streams/0/name"),
    (lambda d: stream(d).update(semantics="x"), "/streams/0/semantics"),
    (lambda d: stream(d).pop("selection"), "/streams/0/selection"),
    (lambda d: stream(d)["selection"].update(fields=1), "/streams/0/selection/fields"),
    (lambda d: stream(d)["schema"].update(type="array"), "/streams/0/schema/type"),
    (lambda d: stream(d)["schema"].update(properties={}), "/streams/0/schema/properties"),
    (lambda d: stream(d)["schema"].update(maxProperties=-1), "/streams/0/schema"),
    (
        lambda d: stream(d)["schema"].update({"$schema": "http://json-schema.org/draft-07/schema"}),
        "/streams/0/schema/$schema",
    ),
    (
        lambda d: stream(d)["schema"]["properties"].update(a={"$ref": "https://x.example/s"}),
        "/streams/0/schema/properties/a/$ref",
    ),
    (
        lambda d: stream(d)["schema"]["properties"].update({"a b": {}}),
        "/streams/0/schema/properties",
    ),
    (
        lambda d: stream(d)["schema"]["properties"].update(a={"description": "x" * 300_000}),
        "/streams/0/schema",
    ),
    (lambda d: stream(d).update(primary_key=[]), "/streams/0/primary_key"),
    (lambda d: stream(d).update(primary_key=["title"]), "/streams/0/primary_key"),
    (lambda d: stream(d).update(primary_key=["nowhere"]), "/streams/0/primary_key"),
    (lambda d: stream(d).update(cursor_field="labels"), "/streams/0/cursor_field"),
    (lambda d: stream(d).update(consent_time_field="title"), "/streams/0/consent_time_field"),
    (lambda d: stream(d)["views"][0].update(fields=["x"]), "/streams/0/views/0/fields"),
    (lambda d: stream(d)["views"][0].pop("fields"), "/streams/0/views/0/fields"),
    (lambda d: stream(d)["views"].append(stream(d)["views"][0]), "/streams/0/views/1/id"),
    (
        lambda d: stream(d)["relationships"][0].update(cardinality="has_many"),
        "/streams/0/relationships/0/cardinality",
    ),
    (
        lambda d: stream(d)["relationships"][0].update(foreign_key_on="both"),
        "/streams/0/relationships/0/cardinality",
    ),
    (
        lambda d: stream(d)["relationships"][1].update(foreign_key_on="both"),
        "/streams/0/relationships",
    ),
    (
        lambda d: shared(d, "created_at"),
        "/streams/0/relationships",
    ),
    (
        lambda d: stream(d)["relationships"][1].update(foreign_key="nowhere"),
        "/streams/0/relationships",
    ),
    (
        lambda d: stream(d)["query"]["range_filters"].update(title=["gte"]),
        "/streams/0/query/range_filters/title",
    ),
    (
        lambda d: stream(d)["query"]["range_filters"].update(word_count=["eq"]),
        "/streams/0/query/range_filters/word_count",
    ),
    (lambda d: stream(d)["query"].update(x={}), "/streams/0/query/x"),
    (
        lambda d: stream(d)["query"]["expand"].append({"name": "x"}),
        "/streams/0/query/expand/2/name",
    ),
    (
        lambda d: stream(d)["query"]["expand"][1].update(max_limit=0),
        "/streams/0/query/expand/1/max_limit",
    ),
    (lambda d: d.update(stream=[]), "/stream"),
    (
        lambda d: stream(d).update(consent_time_fields="created_at"),
        "/streams/0/consent_time_fields",
    ),
    (lambda d: stream(d)["selection"].update(field=True), "/streams/0/selection/field"),
    (
        lambda d: stream(d)["query"]["expand"][0].update(max_limit=5),
        "/streams/0/query/expand/0/name",
    ),
    (
        lambda d: stream(d)["query"]["search"].update(lexical_fields=["word_count"]),
        "/streams/0/query/search/lexical_fields",
    ),
    (
        lambda d: stream(d)["query"]["aggregations"].update(sum=["title"]),
        "/streams/0/query/aggregations/sum",
    ),
    (
        lambda d: stream(d)["query"]["aggregations"].update(count=False),
        "/streams/0/query/aggregations/count",
    ),
    *(
        (
            lambda d, end=end: d["selection_presets"][0]["streams"][0].update(time_range={end: 7}),
            f"/selection_presets/0/streams/0/time_range/{end}",
        )
        for end in ("since", "until")
    ),
    (
        lambda d: d["selection_presets"][0]["streams"][0].update(view="x"),
        "/selection_presets/0/streams/0/view",
    ),
    (
        lambda d: d["selection_presets"][0]["streams"][0].update(name="x"),
        "/selection_presets/0/streams/0/name",
    ),
]


@pytest.mark.parametrize(("change", "path"), BROKEN, ids=[path for _, path in BROKEN])
def test_each_rule_names_the_place_where_it_is_broken(
    change: Callable[[Json], object], path: str
) -> None:
    assert path in fault_paths(change)


def test_all_faults_are_reported_at_once_and_at_most_a_hundred() -> None:
    document = journal()
    document["streams"] = [{"name": f"-{i}"} for i in range(300)]
    assert len(faults(document)) == 100


ADAPTED: list[tuple[Callable[[Json], object], str]] = [
    (lambda d: stream(d).update(semantics="append"), "/streams/0/semantics"),
    (lambda d: stream(d).pop("display"), "/streams/0/display"),
    (lambda d: stream(d)["schema"].update(required=["created_at"]), "/streams/0/primary_key"),
    (lambda d: stream(d).update(consent_time_field="word_count"), "/streams/0/consent_time_field"),
    (
        lambda d: stream(d)["relationships"][0].pop("foreign_key_on"),
        "/streams/0/relationships",
    ),
    (
        lambda d: stream(d)["query"]["expand"][1].update(max_limit=51),
        "/streams/0/query/expand/1/max_limit",
    ),
    (
        lambda d: stream(d)["schema"]["properties"]["body"].update(x_pdpp_role="primary-title"),
        "/streams/0/schema/properties",
    ),
    (lambda d: d.update(short_id(d)), "/connector_id"),
]


def short_id(document: Json) -> Json:
    return {"connector_id": "journal", "manifest_uri": document["source"]["id"]}


@pytest.mark.parametrize(("change", "path"), ADAPTED, ids=[path for _, path in ADAPTED])
def test_what_a_manifest_says_otherwise_is_adapted_and_told(
    change: Callable[[Json], object], path: str
) -> None:
    document = journal()
    change(document)
    assert [each.path for each in parse_declaration(document).adapted] == [path]


def test_an_adapted_manifest_means_what_it_would_have_said() -> None:
    document = journal()
    for change, _ in ADAPTED:
        change(document)
    entries = parse_declaration(document).streams["entries"]
    assert entries.semantics is Semantics.APPEND_ONLY
    assert entries.label == "Entries"
    assert "id" in entries.required
    assert entries.consent_time_field is None
    assert entries.relationships[0].foreign_key_on == "self"
    assert entries.expansions[1].max_limit == 50
    assert [p.name for p in entries.properties.values() if p.role == "primary-title"] == ["title"]


def test_records_that_hold_the_same_value_may_be_related() -> None:
    document = journal()
    shared(document, "volume_id")
    related = parse_declaration(document).streams["entries"].relationships[1]
    assert (related.stream, related.foreign_key_on) == ("entries", "both")


def test_members_that_nobody_knows_are_kept_and_named() -> None:
    document = journal()
    document["profiles"] = ["x"]
    document["capabilities"]["proven"] = {"by": "a run"}
    stream(document)["compaction_class"] = "none"
    parsed = parse_declaration(document)
    assert parsed.kept == ("/capabilities/proven", "/streams/0/compaction_class", "/profiles")
    assert parsed.raw["profiles"] == ["x"]


def nested(depth: int) -> Json:
    return {"not": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize("depth", [200, 450])
def test_a_schema_nested_too_deeply_is_refused(depth: int) -> None:
    document = journal()
    document["streams"][0]["schema"]["properties"]["title"] = nested(depth)
    with pytest.raises(InvalidDeclaration):
        parse_declaration(json.dumps(document).encode())


def test_a_deep_document_is_refused_in_our_words() -> None:
    with pytest.raises(InvalidDeclaration):
        parse_declaration(b'{"a":' * 5_000 + b"1" + b"}" * 5_000)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'"x"', b'{"a":'])
def test_what_is_not_a_json_object_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidDeclaration):
        parse_declaration(content)


def test_a_relation_to_an_undeclared_stream_stands_but_has_no_children() -> None:
    document = journal()
    document["streams"] = document["streams"][:1]
    parsed = parse_declaration(document).streams["entries"]
    assert [r.stream for r in parsed.relationships] == ["volumes", "attachments"]


def test_a_property_behind_a_local_reference_has_its_kind() -> None:
    document = journal()
    document["streams"][0]["schema"]["$defs"] = {"t": {"type": ["string", "null"]}}
    document["streams"][0]["schema"]["properties"]["title"] = {"$ref": "#/$defs/t"}
    title = parse_declaration(document).streams["entries"].properties["title"]
    assert (title.kind, title.nullable) == (ValueKind.STRING, True)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def _paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for name, member in cast("dict[str, object]", value).items():
            found += _paths(member, (*path, name))
    elif isinstance(value, list):
        for i, member in enumerate(cast("list[object]", value)):
            found += _paths(member, (*path, i))
    return found


@given(st.sampled_from(_paths(JOURNAL)), JSON)
def test_any_member_replaced_by_any_value_is_accepted_or_refused_in_our_words(
    path: tuple[str | int, ...], value: object
) -> None:
    document: Any = journal()
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    try:
        parse_declaration(document)
    except InvalidDeclaration as error:
        refused = error.members["errors"]
        event(f"refused {bool(refused)}")


@pytest.mark.parametrize(
    "path",
    [
        "/streams/0/query/expand/0/odd",
        "/streams/0/query/aggregations/odd",
        "/selection_presets/0/odd",
    ],
)
def test_what_is_asked_of_records_and_offered_has_no_other_members(path: str) -> None:
    def change(document: Json) -> None:
        *places, name = path.split("/")[1:]
        part: Any = document
        for place in places:
            part = part[int(place) if isinstance(part, list) else place]
        part[name] = 1

    assert path in fault_paths(change)


def test_a_preset_may_say_what_it_is_for() -> None:
    document = journal()
    document["selection_presets"][0]["description"] = "For a list of titles."
    assert parse_declaration(document).kept == ()


@pytest.mark.parametrize(("depth", "is_one"), [(128, True), (129, False)])
def test_a_document_has_at_most_128_levels(depth: int, is_one: bool) -> None:
    document = journal()
    levels = 4  # the document, "streams", one of them, its own member
    innermost: object = 1
    for _ in range(depth - levels):
        innermost = [innermost]
    stream(document)["odd"] = innermost
    with nullcontext() if is_one else pytest.raises(InvalidDeclaration):
        parse_declaration(json.dumps(document).encode())


def test_the_digest_is_of_the_shortest_text() -> None:
    digest = hashlib.sha256(b'{"a":[1,"\xc3\xa9"]}').hexdigest()
    assert digest_of({"a": [1, "é"]}) == f"sha256:{digest}"


def test_a_preset_may_be_of_a_time() -> None:
    document = journal()
    of_a_time = {"since": "2026-01-01T00:00:00Z", "until": "2026-02-01T00:00:00Z"}
    document["selection_presets"][0]["streams"][0]["time_range"] = of_a_time
    assert parse_declaration(document).kept == ()
