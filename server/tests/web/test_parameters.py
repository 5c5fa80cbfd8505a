import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_kernel.errors import InvalidRequest, PersonalServerError
from personal_server.web.parameters import SELECTORS, Form, Kind, Parameter, by_name, page_limit
from personal_server.web.query_strings import parse_query

DECLARED = by_name(
    (
        page_limit(25, 100),
        Parameter("fields", "", form=Form.LIST, max_items=3),
        Parameter("filter", "", form=Form.KEYED, depth=2, max_items=2),
        Parameter("expand_limit", "", form=Form.KEYED, kind=Kind.INTEGER),
        Parameter("order", "", choices=("asc", "desc")),
        Parameter("since", "", kind=Kind.INSTANT),
        *SELECTORS,
    )
)


def refusal(query: str) -> tuple[str, str | None]:
    with pytest.raises(PersonalServerError) as caught:
        parse_query(query.encode(), DECLARED)
    return caught.value.code, caught.value.param


@pytest.mark.parametrize(
    "query", ["fields=id,title", "fields=id&fields=title", "fields[]=id&fields%5B%5D=title,id"]
)
def test_the_spellings_of_a_list_mean_the_same(query: str) -> None:
    assert parse_query(query.encode(), DECLARED).lists.get("fields", ()) == ("id", "title")


def test_keyed_values_keep_the_name_as_sent() -> None:
    parsed = parse_query(b"filter[status]=open&filter[at][gte]=2026-01-01", DECLARED)
    assert [(k.name, k.path, k.value) for k in parsed.keyed.get("filter", ())] == [
        ("filter[status]", ("status",), "open"),
        ("filter[at][gte]", ("at", "gte"), "2026-01-01"),
    ]


def test_defaults_fill_in_and_sent_names_are_known() -> None:
    parsed = parse_query(b"order=asc", DECLARED)
    assert parsed.integers.get("limit") == 25
    assert parsed.sent == {"order"}


@pytest.mark.parametrize("name", ["connection_id", "connector_instance_id", "connector_id"])
def test_empty_selectors_count_as_absent(name: str) -> None:
    assert parse_query(f"{name}=".encode(), DECLARED).texts.get(name) is None


def test_an_empty_filter_compares_with_the_empty_string() -> None:
    assert parse_query(b"filter[f]=", DECLARED).keyed.get("filter", ())[0].value == ""


def test_a_limit_above_its_maximum_is_clamped_with_a_warning() -> None:
    parsed = parse_query(b"limit=1000", DECLARED)
    assert parsed.integers.get("limit") == 100
    assert parsed.warnings[0].detail == {"requested_limit": 1000, "max_limit": 100}


def test_the_deprecated_selector_works_and_warns() -> None:
    parsed = parse_query(b"connector_instance_id=cin_1", DECLARED)
    assert parsed.texts.get("connection_id") == "cin_1"
    assert parsed.warnings[0].code == "deprecated_alias_used"


@pytest.mark.parametrize(
    ("query", "code", "param"),
    [
        ("color=red", "invalid_request", "color"),
        ("limit[]=1", "invalid_request", "limit[]"),
        ("limit=1&limit=2", "invalid_request", "limit"),
        ("limit=", "invalid_request", "limit"),
        ("limit=0", "invalid_request", "limit"),
        ("limit=-1", "invalid_request", "limit"),
        ("limit=1e3", "invalid_request", "limit"),
        ("limit=%D9%A1", "invalid_request", "limit"),
        ("order=ASC", "invalid_request", "order"),
        ("since=2026-01-01", "invalid_request", "since"),
        ("fields=", "invalid_request", "fields"),
        ("fields=a,,b", "invalid_request", "fields"),
        ("fields=a,b,c,d", "invalid_request", "fields"),
        ("filter=x", "invalid_request", "filter"),
        ("filter[]=x", "invalid_request", "filter[]"),
        ("filter[a][b][c]=x", "invalid_request", "filter[a][b][c]"),
        ("filter[a=x", "invalid_request", "filter[a"),
        ("filter[a]=1&filter[a]=2", "invalid_request", "filter[a]"),
        ("filter[a]=1&filter[b]=2&filter[c]=3", "invalid_request", "filter[c]"),
        ("expand_limit[x]=many", "invalid_request", "expand_limit[x]"),
        ("connection_id=a&connector_instance_id=b", "invalid_request", "connector_instance_id"),
        ("limit=%FF", "invalid_request", "limit"),
        ("%FF=1", "invalid_request", "query"),
        ("fields=" + "a" * 16_400, "resource_limit", None),
    ],
)
def test_bad_syntax_is_refused_by_name(query: str, code: str, param: str | None) -> None:
    assert refusal(query) == (code, param)


def test_a_choice_out_of_range_names_the_choices() -> None:
    with pytest.raises(PersonalServerError) as caught:
        parse_query(b"order=up", DECLARED)
    assert caught.value.members["allowed_values"] == ["asc", "desc"]


@given(
    st.binary(max_size=60) | st.text("limit=&[]%fields,order09azé+", max_size=60).map(str.encode)
)
@settings(max_examples=300)
def test_any_query_parses_or_raises_our_error(query: bytes) -> None:
    with contextlib.suppress(InvalidRequest):
        parse_query(query, DECLARED)
