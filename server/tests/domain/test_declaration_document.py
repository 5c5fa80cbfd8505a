import copy
import hashlib
import json
import sys
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
    named = ("connector", source["id"], "2026-10-01", "Journal")
    for each in (parsed, plain):
        said = (each.source_kind, each.source_id, each.version, each.display_name)
        assert said == named
    assert (plain.display_detail, plain.publisher_id) == (
        "Diary entries and their attachments.",
        "https://connectors.example",
    )
    assert parsed.display_detail is None
    assert parsed.raw["setup"] == {"modality": "any"}


def stream(document: Json, index: int = 0) -> Json:
    return document["streams"][index]


def holder_of(document: Json, path: str) -> tuple[Any, Any]:
    """The object or array that holds a place, and its name or index there."""
    *places, name = path.split("/")[1:]
    part: Any = document
    for place in places:
        part = part[int(place)] if place.isdecimal() else part.setdefault(place, {})
    return part, int(name) if name.isdecimal() else name


def put(document: Json, path: str, value: object) -> None:
    part, name = holder_of(document, path)
    part[name] = value


def changed(path: str, value: object) -> Json:
    """The journal with another value there, without presets where they would miss a stream."""
    document = journal()
    if path.startswith("/streams"):
        del document["selection_presets"]
    put(document, path, value)
    return document


def faulty_paths(document: Json) -> set[str]:
    """Where it has faults; none of one that is accepted."""
    try:
        parse_declaration(document)
    except InvalidDeclaration as error:
        return {each["path"] for each in cast("list[dict[str, str]]", error.members["errors"])}
    return set()


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


def test_a_short_id_and_an_address_are_an_id_without_a_source() -> None:
    document = journal() | short_id(journal())
    del document["source"]
    parsed = parse_declaration(document)
    assert (parsed.source_kind, parsed.source_id) == ("connector", JOURNAL["source"]["id"])


def short_id(document: Json) -> Json:
    return {"connector_id": "journal", "manifest_uri": document["source"]["id"]}


@pytest.mark.parametrize(("change", "path"), ADAPTED, ids=[path for _, path in ADAPTED])
def test_what_a_manifest_says_otherwise_is_adapted_and_told(
    change: Callable[[Json], object], path: str
) -> None:
    document = journal()
    change(document)
    parsed = parse_declaration(document)
    assert ([each.path for each in parsed.adapted], parsed.kept) == ([path], ())


def test_an_adapted_manifest_means_what_it_would_have_said() -> None:
    document = journal()
    for change, _ in ADAPTED:
        change(document)
    declaration = parse_declaration(document)
    assert declaration.source_id == JOURNAL["source"]["id"]
    entries = declaration.streams["entries"]
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
    "place",
    [
        "/source",
        "/display",
        "/streams/0/display",
        "/streams/0/views/0",
        "/streams/0/relationships/0",
        "/streams/0/query",
        "/streams/0/query/search",
        "/streams/0/query/expand/0",
        "/streams/0/query/aggregations",
        "/selection_presets/0",
        "/selection_presets/0/streams/0",
        "/selection_presets/0/streams/0/time_range",
    ],
)
def test_what_decides_about_reads_has_no_other_members(place: str) -> None:
    assert faulty_paths(changed(f"{place}/odd", 1)) == {f"{place}/odd"}


@pytest.mark.parametrize(
    "place",
    [
        "",
        "/publisher",
        "/capabilities",
        "/capabilities/refresh_policy",
        "/streams/0",
        "/streams/0/selection",
    ],
)
def test_elsewhere_other_members_are_kept(place: str) -> None:
    assert parse_declaration(changed(f"{place}/odd", 1)).kept == (f"{place}/odd",)


@pytest.mark.parametrize(
    "place", ["/streams/0/views/0", "/streams/0/relationships/0", "/selection_presets/0"]
)
def test_some_may_say_what_they_are_for(place: str) -> None:
    described = changed(f"{place}/description", "For a list of titles.")
    assert parse_declaration(described).kept == ()


@pytest.mark.parametrize(
    "path",
    [
        "/source",
        "/source/kind",
        "/source/id",
        "/connector_key",
        "/declaration_version",
        "/display",
        "/display/name",
        "/protocol_version",
        "/publisher/id",
        "/streams",
        "/streams/0/name",
        "/streams/0/semantics",
        "/streams/0/display/label",
        "/streams/0/schema",
        "/streams/0/primary_key",
        "/streams/0/selection",
        "/streams/0/views/0/id",
        "/streams/0/views/0/label",
        "/streams/0/views/0/fields",
        "/streams/0/relationships/1/name",
        "/streams/0/relationships/1/stream",
        "/streams/0/relationships/1/foreign_key",
        "/streams/0/relationships/1/cardinality",
        "/streams/0/query/expand/0/name",
        "/selection_presets/0/id",
        "/selection_presets/0/label",
        "/selection_presets/0/streams",
        "/selection_presets/0/streams/0/name",
    ],
)
def test_what_has_to_be_there_is_missed(path: str) -> None:
    document = journal()
    part, name = holder_of(document, path)
    del part[name]
    assert path in faulty_paths(document)


@pytest.mark.parametrize(
    ("path", "begin", "longest"),
    [
        ("/source/id", "urn:", 2_048),
        ("/connector_id", "urn:", 2_048),
        ("/manifest_uri", "urn:", 2_048),
        ("/connector_key", "", 64),
        ("/declaration_version", "", 64),
        ("/version", "", 64),
        ("/display/name", "", 200),
        ("/display_name", "", 200),
        ("/streams/2/name", "", 128),
        ("/streams/0/views/0/id", "", 128),
        ("/streams/0/relationships/0/name", "", 128),
        ("/streams/0/relationships/0/stream", "", 128),
        ("/streams/0/relationships/0/foreign_key", "", 128),
        ("/selection_presets/0/id", "", 128),
    ],
)
def test_a_text_has_a_longest(path: str, begin: str, longest: int) -> None:
    document = journal()
    document["streams"] = document["streams"][:1] + document["streams"][2:]  # a key may be of any
    path = path.replace("/streams/2/", "/streams/1/")
    if path == "/connector_id":
        del document["source"]
    elif path == "/manifest_uri":
        document["connector_id"] = document["connector_key"]
        del document["source"]
    elif path == "/version":
        del document["declaration_version"]
    elif path == "/display_name":
        del document["display"]
    elif path.endswith("/foreign_key"):
        stream(document)["relationships"][0].update(foreign_key_on="target", stream="elsewhere")
    put(document, path, begin.ljust(longest, "a"))
    assert path not in faulty_paths(document)
    put(document, path, begin.ljust(longest + 1, "a"))
    assert path in faulty_paths(document)


@pytest.mark.parametrize(
    ("path", "value", "is_one"),
    [
        ("/capabilities/refresh_policy/maximum_staleness_seconds", 1, True),
        ("/capabilities/refresh_policy/maximum_staleness_seconds", 316_224_000, True),
        ("/capabilities/refresh_policy/maximum_staleness_seconds", 316_224_001, False),
        ("/streams/0/query/expand/1/default_limit", 0, False),
        ("/streams/0/query/expand/1/default_limit", 1, True),
        ("/streams/0/query/expand/1/default_limit", 50, True),
        ("/streams/0/query/expand/1/default_limit", 51, False),
        ("/streams/0/query/expand/1/max_limit", 10, True),
        ("/streams/0/query/expand/1/max_limit", sys.maxsize, True),
        ("/streams/0/query/expand/1/max_limit", sys.maxsize + 1, False),
        ("/streams/0/primary_key", ["labels"], False),
        ("/streams/2/primary_key", ["id", "filename"], True),
        ("/streams/0/cursor_field", "pinned", True),
        ("/streams/0/cursor_field", "nowhere", False),
        ("/streams/0/consent_time_field", "nowhere", False),
        ("/streams/0/query/range_filters/created_at", [], False),
        ("/streams/0/query/range_filters/nowhere", ["gte"], False),
        ("/streams/0/query/search/semantic_fields", ["created_at"], True),
        ("/streams/0/query/search/semantic_fields", ["word_count"], False),
        ("/streams/0/query/search/semantic_fields", ["nowhere"], False),
        ("/streams/0/relationships/1/foreign_key_on", "neither", False),
        ("/streams/0/query/aggregations/count", True, True),
        ("/streams/0/query/aggregations/count", 1, False),
        ("/selection_presets/0/streams/0/necessity", "optional", True),
        ("/selection_presets/0/streams/0/necessity", "needed", False),
        ("/selection_presets/0/streams/0/resources", ["a", "b"], True),
        ("/selection_presets/0/streams/0/resources", "a", False),
        ("/streams/0/selection/resources", 1, False),
    ],
)
def test_a_value_is_allowed_or_a_fault_of_its_place(
    path: str, value: object, *, is_one: bool
) -> None:
    assert faulty_paths(changed(path, value)) == (set() if is_one else {path})


@pytest.mark.parametrize(("fields", "is_one"), [(8, True), (9, False)])
def test_a_key_has_at_most_8_fields(fields: int, *, is_one: bool) -> None:
    document = journal()
    names = [f"k{number}" for number in range(fields)]
    stream(document, 1)["schema"]["properties"].update({name: {"type": "string"} for name in names})
    put(document, "/streams/1/primary_key", names)
    relations = stream(document)["relationships"]
    stream(document).update(relationships=relations[1:], query={})
    assert faulty_paths(document) == (set() if is_one else {"/streams/1/primary_key"})


@pytest.mark.parametrize(
    ("manifest", "place", "name"),
    [
        ("version", "", "declaration_version"),
        ("display_name", "/display", "name"),
        ("connector_id", "/source", "id"),
    ],
)
def test_two_spellings_that_differ_are_a_fault_and_one_is_enough(
    manifest: str, place: str, name: str
) -> None:
    document = journal()
    part, _ = holder_of(document, f"{place}/{name}")
    document[manifest] = part[name]
    assert faulty_paths(document) == set()
    document[manifest] += "x"
    assert faulty_paths(document) == {f"/{manifest}"}
    del document[place[1:] or name]
    assert faulty_paths(document) == set()


@pytest.mark.parametrize(
    ("expand", "limits"),
    [
        ({}, (10, 50)),
        ({"max_limit": 1}, (1, 1)),
        ({"max_limit": 5}, (5, 5)),
        ({"max_limit": 20}, (10, 20)),
        ({"default_limit": 7}, (7, 50)),
        ({"default_limit": 20, "max_limit": 20}, (20, 20)),
        ({"default_limit": 3, "max_limit": 99}, (3, 50)),
    ],
)
def test_an_expansion_has_limits_where_it_says_none(expand: Json, limits: tuple[int, int]) -> None:
    document = journal()
    stream(document)["query"]["expand"][1] = {"name": "attachments", **expand}
    found = parse_declaration(document).streams["entries"].expansions[1]
    assert (found.default_limit, found.max_limit) == limits


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ({"name": "attachments", "default_limit": 21, "max_limit": 20}, "1/default_limit"),
        ({"name": "volume"}, "1/name"),
        ({"name": "volumes"}, "1/name"),
    ],
)
def test_an_expansion_is_of_a_relation_once_and_shows_no_more_than_its_most(
    entry: Json, place: str
) -> None:
    document = journal()
    stream(document)["query"]["expand"][1] = entry
    assert faulty_paths(document) == {f"/streams/0/query/expand/{place}"}


@pytest.mark.parametrize("limit", ["default_limit", "max_limit"])
def test_what_relates_to_one_record_has_no_limits(limit: str) -> None:
    document = journal()
    stream(document)["query"]["expand"][0][limit] = 5
    assert faulty_paths(document) == {"/streams/0/query/expand/0/name"}


@pytest.mark.parametrize(
    ("number", "keyed", "is_one"),
    [
        (0, 1, False),  # the volume of an entry is asked for by the key of volumes
        (1, 0, False),  # attachments hold the key of entries
        (1, 2, True),
        (0, 0, True),
    ],
)
def test_the_side_that_is_referred_to_has_a_key_of_one_field(
    number: int, keyed: int, *, is_one: bool
) -> None:
    document = journal()
    stream(document)["query"]["expand"] = [stream(document)["query"]["expand"][number]]
    other = {0: "created_at", 1: "name", 2: "entry_id"}[keyed]
    stream(document, keyed)["primary_key"] = ["id", other]
    assert faulty_paths(document) == (set() if is_one else {"/streams/0/query/expand/0/name"})


def test_what_shares_a_value_may_have_a_key_of_several_fields() -> None:
    document = journal()
    shared(document, "volume_id")
    stream(document)["primary_key"] = ["id", "created_at"]
    assert faulty_paths(document) == set()


@pytest.mark.parametrize(
    ("said", "cardinality", "related", "key", "side"),
    [
        ("self", "has_one", "volumes", "volume_id", "self"),
        ("target", "has_many", "attachments", "entry_id", "target"),
        (None, "has_many", "attachments", "entry_id", "target"),
        (None, "has_one", "attachments", "entry_id", "target"),
        (None, "has_one", "volumes", "volume_id", "self"),
        (None, "has_one", "volumes", "name", "target"),
        (None, "has_one", "volumes", "id", "target"),
        (None, "has_one", "elsewhere", "volume_id", "target"),
    ],
)
def test_a_key_that_the_related_stream_lacks_is_looked_for_in_its_own(
    said: str | None, cardinality: str, related: str, key: str, side: str
) -> None:
    document = journal()
    relation = {"name": "r", "stream": related, "foreign_key": key, "cardinality": cardinality}
    stream(document)["relationships"] = [relation | ({"foreign_key_on": said} if said else {})]
    stream(document)["query"] = {}
    parsed = parse_declaration(document)
    assert parsed.streams["entries"].relationships[0].foreign_key_on == side
    assert bool(parsed.adapted) is (said is None and side == "self")


@pytest.mark.parametrize(
    ("key", "side", "cardinality", "related", "is_one"),
    [
        ("nowhere", "target", "has_many", "attachments", False),
        ("blob_ref", "target", "has_many", "attachments", False),
        ("filename", "target", "has_many", "attachments", True),
        ("labels", "self", "has_one", "volumes", False),
        ("nowhere", "target", "has_many", "elsewhere", True),
        ("word_count", "both", "has_many", "entries", True),
        ("title", "both", "has_many", "entries", True),
        ("pinned", "both", "has_many", "entries", False),
        ("name", "both", "has_many", "volumes", False),
        ("id", "both", "has_many", "volumes", True),
    ],
)
def test_a_foreign_key_is_a_declared_scalar_of_the_side_that_holds_it(
    key: str, side: str, cardinality: str, related: str, *, is_one: bool
) -> None:
    document = journal()
    relation = {"name": "r", "stream": related, "foreign_key": key, "cardinality": cardinality}
    stream(document)["relationships"] = [{**relation, "foreign_key_on": side}]
    stream(document)["query"] = {}
    assert faulty_paths(document) == (set() if is_one else {"/streams/0/relationships"})


def test_a_key_on_both_sides_is_of_one_kind() -> None:
    document = journal()
    shared(document, "volume_id")
    stream(document)["relationships"][1]["stream"] = "volumes"
    stream(document)["query"] = {}
    number = {"volume_id": {"type": "integer"}}
    stream(document, 1)["schema"]["properties"].update(number)
    assert faulty_paths(document) == {"/streams/0/relationships"}


@pytest.mark.parametrize(
    ("member", "value", "is_one"),
    [
        ("fields", ["title"], True),
        ("fields", ["nowhere"], False),
        ("view", "titles", True),
        ("view", "nowhere", False),
    ],
)
def test_a_preset_names_a_view_or_fields_of_its_stream(
    member: str, value: object, *, is_one: bool
) -> None:
    document = journal()
    document["selection_presets"][0]["streams"][0] = {"name": "entries", member: value}
    place = f"/selection_presets/0/streams/0/{member}"
    assert faulty_paths(document) == (set() if is_one else {place})


def test_a_preset_names_no_view_beside_fields_and_comes_once() -> None:
    document = journal()
    document["selection_presets"][0]["streams"][0]["fields"] = ["title"]
    document["selection_presets"].append(copy.deepcopy(JOURNAL["selection_presets"][0]))
    assert faulty_paths(document) == {
        "/selection_presets/0/streams/0/view",
        "/selection_presets/1/id",
    }


@pytest.mark.parametrize(
    "path",
    [
        "/source/kind",
        "/connector_key",
        "/declaration_version",
        "/streams/0/display/label",
        "/streams/0/views/0/label",
        "/streams/0/relationships/0/name",
        "/selection_presets/0/label",
    ],
)
def test_what_is_no_text_is_one_fault(path: str) -> None:
    assert path in faulty_paths(changed(path, 7))


def test_what_a_stream_is_called_says_its_display_or_its_name() -> None:
    document = journal()
    stream(document, 1)["display"]["detail"] = "By the year."
    stream(document, 2)["name"] = "photos_and_files"
    del stream(document, 2)["display"]
    named = [(each.label, each.detail) for each in parse_declaration(document).streams.values()]
    assert named[1:] == [("Your volumes", "By the year."), ("Photos and files", None)]


def test_a_stream_says_what_may_be_asked_of_it() -> None:
    entries, volumes, _ = parse_declaration(JOURNAL).streams.values()
    assert (entries.selectable_fields, entries.selectable_resources) == (True, True)
    assert (entries.lexical_fields, entries.semantic_fields) == (("title", "body"), ("body",))
    assert entries.range_filters["created_at"] == ("gte", "gt", "lte", "lt")
    assert entries.aggregations.count
    assert entries.aggregations.sum == ("word_count",)
    assert entries.aggregations.group_by_time == ("created_at",)
    assert (volumes.aggregations.sum, volumes.range_filters, volumes.views) == ((), {}, ())
    assert (entries.required, entries.cursor_field) == (("id", "created_at"), "created_at")
    assert (volumes.cursor_field, volumes.consent_time_field) == (None, None)


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
