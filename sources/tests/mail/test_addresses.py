import email.utils
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_sources.mail.addresses import Address, parse_addresses, reads_as_nobody


def read(value: str) -> list[tuple[str, str]]:
    return [(each.name, each.email) for each in parse_addresses(value)]


@pytest.mark.parametrize(
    ("value", "people"),
    [
        # names that are addresses, brackets, commas without quotes
        ("bob@example.org <bob@example.org>", [("", "bob@example.org")]),
        ("'ann@x.org' <ann@x.org>, b@x.org", [("", "ann@x.org"), ("", "b@x.org")]),
        ("boss@y.org <bob@x.org>", [("boss@y.org", "bob@x.org")]),
        ("Bob [Sales] <b@x.org>", [("Bob [Sales]", "b@x.org")]),
        ("Doe, John <john@x.org>", [("Doe, John", "john@x.org")]),
        ("a@x.org, Doe, John, MD <j@x.org>", [("", "a@x.org"), ("Doe, John, MD", "j@x.org")]),
        ("O'Brien <o@x.org>", [("O'Brien", "o@x.org")]),
        ('"A \\"q\\" B" <a@x.org>', [('A "q" B', "a@x.org")]),
        ('"Tan Tanaka,<t@x.org>', [("Tan Tanaka", "t@x.org")]),
        ('"Meyer, Greg <g@x.org>"', [("Meyer, Greg", "g@x.org")]),
        ("Shop: Sales <s@x.org>", [("Shop: Sales", "s@x.org")]),
        # separators
        ("a@b.c; b@c.d", [("", "a@b.c"), ("", "b@c.d")]),
        ("a@b.c,", [("", "a@b.c")]),
        (" ,a@b.c, ,", [("", "a@b.c")]),
        ("a@b.c b@c.d", [("", "a@b.c"), ("", "b@c.d")]),
        ("Ann <a@x.org> Bo <b@y.org>", [("Ann", "a@x.org"), ("Bo", "b@y.org")]),
        ("<a@x.org>,<b@y.org>", [("", "a@x.org"), ("", "b@y.org")]),
        ("Ann <a@x.org, b@x.org>", [("Ann", "a@x.org"), ("", "b@x.org")]),
        # one bad entry among good ones
        ("a@b.c, not one at all, c@d.e", [("", "a@b.c"), ("not one at all", ""), ("", "c@d.e")]),
        ("a@b.c, d@@e, c@d.e", [("", "a@b.c"), ("d@@e", ""), ("", "c@d.e")]),
        ('"open <a@x.org>, c@d.e', [("open", "a@x.org"), ("", "c@d.e")]),
        ("Ann <a@x.org, Bo <b@y.org>", [("Ann", "a@x.org"), ("Bo", "b@y.org")]),
        ("<<a@x.org>>", [("", "a@x.org")]),
        ("a@b@c.d, e@f.g", [("a@b@c.d", ""), ("", "e@f.g")]),
        ("a@b.c@d.e", [("@d.e", "a@b.c")]),  # a server added its own name behind it
        # groups, remarks, routes, schemes
        ("Pete <pete(his account)@x.org(his host)>", [("Pete", "pete@x.org")]),
        ("Friends: Chris <c@(his host)x.org>, a@b.c;", [("Chris", "c@x.org"), ("", "a@b.c")]),
        ('Friends: a@b.c, "Bo, B" <b@c.d>;', [("", "a@b.c"), ("Bo, B", "b@c.d")]),
        ("undisclosed-recipients:;", []),
        ("undisclosed-recipients:", []),
        ("<Undisclosed-Recipient:;@x.org>", []),
        ("ann@x.org (Ann (the) B)", [("Ann (the) B", "ann@x.org")]),
        ("Ann <ann@x.org> (work), c@d.e", [("Ann (work)", "ann@x.org"), ("", "c@d.e")]),
        ("<@a.org,@b.org:joe@c.org>", [("", "joe@c.org")]),
        ("mailto:a@b.c", [("", "a@b.c")]),
        ("Ann [mailto:ann@x.org]", [("Ann", "ann@x.org")]),
        ("ann@x.org <Ann>", [("Ann", "ann@x.org")]),
        ('"Ann <ann@x.org>"', [("Ann", "ann@x.org")]),
        # odd addresses
        ("root", [("", "root")]),
        ("<>", []),
        ('"j d"@x.org', [("", '"j d"@x.org')]),
        ("joe@[127.0.0.1]", [("", "joe@[127.0.0.1]")]),
        ("Ann <ann@münchen.de>", [("Ann", "ann@münchen.de")]),
        ("ann@xn--mnchen-3ya.de", [("", "ann@xn--mnchen-3ya.de")]),
        ("ann @ x.org", [("", "ann@x.org")]),
        # encoded words
        ("=?utf-8?q?Doe,_J=C3=B6hn?= <j@x.org>", [("Doe, Jöhn", "j@x.org")]),
        ('"=?utf-8?q?J=C3=B6hn?=" <j@x.org>', [("Jöhn", "j@x.org")]),
        ("=?utf-8?q?Ann_=3Cann@x.org=3E?=", [("Ann", "ann@x.org")]),
    ],
)
def test_every_good_address_of_a_list_survives(value: str, people: list[tuple[str, str]]) -> None:
    assert read(value) == people


def test_an_entry_without_an_address_is_told_apart() -> None:
    good, bad = parse_addresses("ann@x.org, nobody in particular")
    assert (reads_as_nobody(good), reads_as_nobody(bad)) == (False, True)


def test_a_strict_library_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later patch releases of Python answer one empty pair for a whole list."""

    def strict(*_: object, **__: object) -> list[tuple[str, str]]:
        return [("", "")]

    monkeypatch.setattr(email.utils, "getaddresses", strict)
    assert read("strict@x.org <strict@x.org>, b@x.org") == [("", "strict@x.org"), ("", "b@x.org")]


words = st.text("abc ÄÖ'.[]-", min_size=1, max_size=12).map(str.strip)
mailboxes = st.from_regex(r"[a-z][a-z0-9.+_-]{0,8}[a-z]@[a-z]{1,8}\.[a-z]{2,5}", fullmatch=True)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(words, mailboxes, st.sampled_from(["{0} <{1}>", '"{0}, x" <{1}>', "{1}"])))
)
def test_what_is_written_as_the_standard_says_is_read_back(
    people: list[tuple[str, str, str]],
) -> None:
    written = ", ".join(form.format(name, email) for name, email, form in people)
    assert [each.email for each in parse_addresses(written)] == [each for _, each, _ in people]


@settings(max_examples=300, deadline=None)
@given(st.text('ab@.,;:<>()[]"\\ =?\n', max_size=60))
def test_no_text_fails_and_none_is_an_empty_entry(value: str) -> None:
    for each in parse_addresses(value):
        assert isinstance(each, Address)
        assert each.name or each.email


@pytest.mark.parametrize(
    "repeated", ["(", '"', "<", "a:", "@[", "a, ", "( (a) ", "a@b ", "a", "a.", "@", " x", "=?a?q?"]
)
def test_a_list_without_end_costs_no_more_than_its_length(repeated: str) -> None:
    began = time.process_time()
    parse_addresses(repeated * (300_000 // len(repeated)))
    assert time.process_time() - began < 9
