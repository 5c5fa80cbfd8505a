"""Pages in the reader's language and zone; and that none says anything else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from gettext import NullTranslations
from html import unescape
from html.parser import HTMLParser
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from pages.catalogues import extracted
from pdpp_kernel.errors import InvalidFilter
from pdpp_kernel.texts import (
    Date,
    Day,
    DaySpan,
    Joined,
    Minute,
    Size,
    counted,
    date_of,
    day_of_text,
    listed,
    message,
    plural,
    start_of_day,
)
from pdpp_sources.bank.reader import DECLARATION as BANK
from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.console.languages import (
    Language,
    PageReader,
    catalogue,
    is_offered,
    language_of,
    languages,
    negotiated,
    translations,
)
from personal_server.console.words import declared_name, field_words
from personal_server.domain.disclosure import AskedDetail
from personal_server.domain.hosts import host_connections
from personal_server.owner_locale import OwnerLocale
from personal_server.storage.authorization_rows import CanaryRow, GrantRow, ReadingAlarmRow
from server.tests.cli.test_disclosures import entry
from server.tests.console.browsing import SECOND, Browser, Page, allow, words
from server.tests.console.household import HOME, PEOPLE, SUBJECTS, Household, mail_request

GERMAN = language_of("de", translations(catalogue("de")))
ENGLISH = language_of("en")
BERLIN = PageReader(GERMAN, ZoneInfo("Europe/Berlin"))
LONDON = PageReader(ENGLISH, ZoneInfo("Europe/London"))
IN_UTC = PageReader(ENGLISH, ZoneInfo("UTC"))


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


def test_a_moment_is_told_in_the_readers_zone_with_its_date() -> None:
    late = at("2026-08-23T23:30:00")
    assert BERLIN.text(Minute(late)) == "24. Aug. 2026, 01:30"
    assert BERLIN.text(Day(late)) == "24. Aug. 2026"
    assert IN_UTC.text(Minute(late)) == str(Minute(late)) == "23 Aug 2026, 23:30 UTC"
    assert IN_UTC.text(Day(late)) == str(Day(late)) == "23 Aug 2026"
    assert BERLIN.html(Minute(late)) == (
        '<time datetime="2026-08-23T23:30:00Z" title="23. Aug. 2026, 23:30 UTC">'
        "24. Aug. 2026, 01:30</time>"
    )


@pytest.mark.parametrize(
    ("moment", "seen"),
    [
        ("2026-10-25T00:30:00", "25. Okt. 2026, 02:30"),
        ("2026-10-25T01:30:00", "25. Okt. 2026, 02:30"),
        ("2026-10-25T02:30:00", "25. Okt. 2026, 03:30"),
        ("2026-03-29T00:59:00", "29. März 2026, 01:59"),
        ("2026-03-29T01:00:00", "29. März 2026, 03:00"),
    ],
)
def test_an_hour_that_is_twice_or_not_at_all_is_told_as_clocks_tell_it(
    moment: str, seen: str
) -> None:
    assert BERLIN.text(Minute(at(moment))) == seen


def test_a_day_of_the_calendar_is_the_same_everywhere() -> None:
    day = date_of(20_688)
    for reader in (BERLIN, PageReader(GERMAN, ZoneInfo("Pacific/Kiritimati"))):
        assert reader.text(day) == "23. Aug. 2026"
    assert LONDON.text(day) == str(day) == "23 Aug 2026"
    assert LONDON.text(Date(day.day, "month")) == str(Date(day.day, "month")) == "Aug 2026"
    assert BERLIN.text(Date(day.day, "year")) == "2026"
    assert LONDON.text(day_of_text("2026-08-23T23:30:00Z")) == "24 Aug 2026"
    assert LONDON.text(day_of_text("2026-08-23")) == "23 Aug 2026"
    assert LONDON.text(day_of_text("unclear")) == "unclear"


def test_a_span_of_days_is_written_as_the_language_does() -> None:
    late = Day(at("2026-08-23T23:30:00"))
    inside = DaySpan(Date(date(2026, 8, 12)), Date(date(2026, 8, 20)))
    assert BERLIN.text(inside) == "12.–20. Aug. 2026"
    assert LONDON.text(inside) == "12–20 Aug 2026"
    years = DaySpan(Date(date(2025, 5, 7)), late)
    assert BERLIN.text(years) == "7. Mai 2025\u2009–\u200924. Aug. 2026"
    assert BERLIN.text(DaySpan(late, late)) == "24. Aug. 2026"
    assert BERLIN.html(DaySpan(late, late)) == (
        '<span title="23. Aug. 2026, 23:30 UTC – 23. Aug. 2026, 23:30 UTC">24. Aug. 2026</span>'
    )


def test_figures_are_written_as_the_language_does() -> None:
    assert (BERLIN.text(1_234_567), LONDON.text(1_234_567)) == ("1.234.567", "1,234,567")
    for size, german, english in (
        (999, "999 B", "999 B"),
        (3_400, "3,4 KB", "3.4 KB"),
        (340_000, "340 KB", "340 KB"),
        (5_300_000_000_000, "5.300,0 GB", "5,300.0 GB"),
    ):
        assert BERLIN.text(Size(size)) == german
        assert LONDON.text(Size(size)) == str(Size(size)) == english


def test_what_is_counted_takes_the_form_of_its_number() -> None:
    assert BERLIN.text(counted(1, "record")) == "1 Datensatz"
    assert BERLIN.text(counted(2_000, "record")) == "2.000 Datensätze"
    assert str(counted(1, "record")) == "1 record"
    assert LONDON.text(counted(0, "search", "searches")) == "0 searches"
    some = plural("one of %(all)s", "%(num)s of %(all)s", 3, all=5_000)
    assert LONDON.text(some) == str(some) == "3 of 5,000"
    assert str(listed("abc")) == "a, b, c"
    assert str(listed("abcdefg")) == "a, b, c, d, e and 2 more"


def test_values_are_escaped_and_texts_keep_what_is_in_them() -> None:
    told = message("%(app)s says:", app=Joined(("<b>", Minute(0))))
    assert LONDON.html(told) == (
        '<bdi>&lt;b&gt;</bdi>, <time datetime="1970-01-01T00:00:00Z"'
        ' title="1 Jan 1970, 00:00 UTC">1 Jan 1970, 01:00</time> says:'
    )
    assert BERLIN.text(told) == "<b>, 1. Jan. 1970, 01:00 sagt:"


@pytest.mark.parametrize(
    ("accepted", "tag"),
    [
        ("de", "de"),
        ("de-AT,en;q=0.5", "de"),
        ("fr-CH, fr;q=0.9, en;q=0.8, de;q=0.7, *;q=0.5", "en"),
        ("en;q=0.1,de;q=0.9", "de"),
        ("de;q=0", "en"),
        ("", "en"),
        ("*", "en"),
        (";;;,,,q=,de;q=x,-,de-,\x00", "en"),
        ("fr," * 10_000 + "de", "en"),
        ("d" * 100_000, "en"),
        ("de-Latn-DE-1996-x-a-b-c", "de"),
        ("de" + "-a" * 200_000, "en"),
        ("de;q=9", "en"),
    ],
)
def test_a_browser_gets_the_language_that_it_likes_best(accepted: str, tag: str) -> None:
    assert negotiated(accepted, {"en": ENGLISH, "de": GERMAN}).tag == tag


def test_a_page_says_its_language_and_that_it_depends_on_the_browser() -> None:
    page = Household().browser().get("/owner/login", accept_language="de-CH,de;q=0.9")
    assert page.headers["content-language"] == "de"
    assert "accept-language" in page.headers["vary"].lower()
    assert '<html lang="de">' in page.text
    assert "Als Eigentümer anmelden" in words(page)
    assert '<html lang="en">' in Household().browser().get("/owner/login").text


def test_a_language_is_offered_while_nine_texts_in_ten_are_translated() -> None:
    said = catalogue("de")
    texts = [each for each in said if each.id]
    for each in texts:  # a text of today may wait for its translation
        each.string = ("x", "x") if each.pluralizable else "x"
    gone, more = len(said) // 10, len(said) // 10 + 1
    for each in texts[:gone]:
        each.string = ("", "") if each.pluralizable else ""
    assert is_offered(said)
    for each in texts[:more]:
        each.string = ("", "") if each.pluralizable else ""
    assert not is_offered(said)


def test_a_text_without_a_translation_is_shown_in_english() -> None:
    said = catalogue("de")
    for text in ("Sign in", "%(num)s record"):
        each = said.get(text)
        assert each is not None
        each.string = ("", "") if each.pluralizable else ""
    reader = PageReader(language_of("de", translations(said)), ZoneInfo("UTC"))
    assert reader.text(message("Sign in")) == "Sign in"
    assert reader.text(counted(2_000, "record")) == "2.000 records"


def test_the_owners_language_goes_before_that_of_the_browser() -> None:
    house = Household()
    house.locale.known = OwnerLocale(language="de")
    assert "Anmelden" in words(house.browser().get("/owner/login", accept_language="en"))
    house.locale.known = OwnerLocale(language="xx")
    assert "Sign in" in words(house.browser().get("/owner/login", accept_language="en"))


def test_a_refusal_is_said_in_the_readers_language_with_its_code() -> None:
    house, browser = marked_browser()
    for path in ("/owner/nothing", "/owner/access/gone", "/consent/ar_x", "/owner/login?x=1"):
        page = browser.get(path)
        assert page.error is not None
        assert unmarked(page, *DATA) == [], path
    house.sign_in.set_password("a long enough password")
    wrong = house.browser()
    refused = wrong.submit(wrong.get("/owner/login"), "/owner/login", password="no")
    assert (refused.status, unmarked(refused, *DATA)) == (401, [])


class Marked(NullTranslations):
    """A language that says every text for catalogues between marks, and no other."""

    def gettext(self, message: str) -> str:
        return f"⟦{message}⟧" if message in extracted() else message

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return f"⟦{msgid1 if n == 1 else msgid2}⟧"


def marking() -> Mapping[str, Language]:
    return {**languages(), "en": replace(ENGLISH, texts=Marked())}


class Shown(HTMLParser):
    """What of a page is read: its text without code, and the attributes that are read out."""

    READ_OUT = ("aria-label", "alt", "title", "placeholder", "data-label")
    UNSAID = ("code", "pre", "style", "script")

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.attributes: list[str] = []
        self.unsaid = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.text += "" if tag == "mark" else "\n"
        self.unsaid += tag in self.UNSAID or ("class", "monogram") in attrs
        if tag != "time":
            self.attributes += [value or "" for name, value in attrs if name in self.READ_OUT]

    def handle_endtag(self, tag: str) -> None:
        self.text += "" if tag == "mark" else "\n"
        if self.unsaid and tag in (*self.UNSAID, "span"):
            self.unsaid -= 1

    def handle_data(self, data: str) -> None:
        if not self.unsaid:
            self.text += data


BEGINNING = r"(\d{1,2}( [A-Z][a-z]{2,3})?\u2009?–\u2009?)?"
MOMENT = BEGINNING + r"(\d{1,2} )?[A-Z][a-z]{2,3} \d{4}(, \d\d:\d\d)?( UTC)?"
WRITTEN = r"Dear Ada|secret number \d+ stays between us\.|[\d.]+ [KM]?B|.*<?\w+@example\.org>?"
"""Moments as a language writes them, and what mails say."""


def unmarked(page: Page, *known: str) -> list[str]:
    """What a page says outside of marks and that is no data: words that no language changes."""
    shown = Shown()
    shown.feed(page.text)
    found: list[str] = []
    for text in (shown.text, *shown.attributes):
        depth, outside = 0, ""
        for character in unescape(text):
            depth += (character == "⟦") - (character == "⟧")
            outside += character if not depth and character != "⟧" else ""
        assert depth == 0
        rest = re.split(r"[\n·,;:()]", re.sub(MOMENT, "", outside))
        said = (each.strip(" ←↓↑…–") for each in rest)
        found += [each for each in said if re.search(r"[^\W\d_]{2}", each) and each not in known]
    return [each for each in found if not re.fullmatch(WRITTEN, each)]


DATA = ("Ada's server", "Notes app", "UTC", "English", "Deutsch")


def called(stream: Mapping[str, Any]) -> list[str]:
    """The names that a declaration gives."""
    related = [field_words(each["name"]).capitalize() for each in stream.get("relationships", ())]
    fields = [field_words(name) for name in stream["schema"]["properties"]]
    return [stream["name"], stream["display"]["label"], *related, *fields]


NAMED = (
    *PEOPLE,
    *SUBJECTS,
    *("Home mailbox", "Work mailbox", "Checking account", "E-mail", "E-Mail", "mail", HOME),
    *(
        "Re",
        "holiday plans",
        "lunch",
        "words",
        "at most",
        "gone",
        "from name  Alan Turing",
        "XXXX-XXXX",
    ),
    *(word for raw in (MAIL, BANK) for stream in raw["streams"] for word in called(stream)),
)
"""What records, sources and apps are called, and what an app asked."""
FROM = ("203.0.113.7", "python-httpx2/2.16.2")


def marked_browser() -> tuple[Household, Browser]:
    house = Household(languages=marking)
    return house, house.signed_in()


def test_json_stays_english() -> None:
    owner = Household().signed_in()
    for path in (
        "/owner/nothing",
        f"/owner/records/{HOME}/messages?filter[from_name][like]=x",
    ):
        messages = {
            json.loads(owner.get(path, accept_language=tag, accept="application/json").text)[
                "error"
            ]["message"]
            for tag in ("de", "en")
        }
        assert len(messages) == 1


def test_a_refusal_with_values_is_said_in_both_ways_alike() -> None:
    refused = InvalidFilter(
        message("A request can have at most %(most)s conditions.", most=32), param="filter"
    )
    assert type(refused.message) is str
    assert refused.message == str(refused) == "A request can have at most 32 conditions."
    assert BERLIN.text(BERLIN.known(refused.text)) == "Höchstens 32 Bedingungen."
    unheld = InvalidFilter("100 % of this is in no catalogue.")
    assert BERLIN.text(BERLIN.known(unheld.text)) == unheld.message


def test_names_of_a_declaration_are_said_in_the_language_that_knows_them() -> None:
    assert BERLIN.html(declared_name("Your payments")) == "<bdi>Ihre Zahlungen</bdi>"
    assert BERLIN.text(field_words("sent_at")) == "Gesendet am"
    assert BERLIN.html(declared_name("My 100% <own>")) == "<bdi>My 100% &lt;own&gt;</bdi>"
    assert LONDON.text(field_words("sent_at")) == "sent at"
    names = {"source": declared_name("E-mail"), "account": "E-mail"}
    said = BERLIN.text(message("%(source)s of %(account)s", **names))
    assert said == "E-Mail of E-mail"


def test_pages_name_kinds_and_fields_in_the_owners_language() -> None:
    house = Household()
    house.locale.keep("Europe/Berlin", "de")
    browser = house.signed_in()
    assert "Ihre Zahlungen" in words(browser.get("/owner/records"))
    table = words(browser.get(f"/owner/records/{HOME}/messages?as=table"))
    assert "Gesendet am" in table
    assert "sent at" not in table
    asked = words(browser.get(house.ask(mail_request())))
    assert "Ihre E-Mails" in asked
    assert "Absenderadresse" in asked


def test_a_value_in_a_refusal_stays_as_it_is_and_is_escaped() -> None:
    refused = message("No connection here has the stream '%(stream)s'.", stream="<b>nothing</b>%s")
    named = "<bdi>&lt;b&gt;nothing&lt;/b&gt;%s</bdi>"
    assert BERLIN.html(refused) == f"Kein Konto hier hat eine Art „{named}“."


MESSAGES = f"/owner/records/{HOME}/messages"
REFUSED_READS = (
    f"{MESSAGES}?filter[nothing]=x",
    f"{MESSAGES}?filter[from_name][like]=x",
    f"{MESSAGES}?filter[sent_at][gte]=x",
    f"{MESSAGES}?filter[from_name][contains]=",
    f"{MESSAGES}?filter[to_addresses]=x",
    f"{MESSAGES}?filter[from_name][exists]=perhaps",
    f"{MESSAGES}?sort=body",
    f"{MESSAGES}?since=yesterday",
    f"{MESSAGES}?cursor=x",
    f"{MESSAGES}?as=x",
    f"{MESSAGES}?unknown=1",
    f"{MESSAGES}/m999",
    f"{MESSAGES}/m001/text/nothing",
    f"{MESSAGES}/m001/files/subject",
    "/owner/records/cin_gone/messages",
    "/owner/search?q=-",
    "/owner/search?q=" + "a" * 1_100,
    "/owner/search?q=" + "+".join(f"w{number}" for number in range(100)),
    "/owner/search?q=lunch&cursor=x",
    "/owner/search?q=lunch&sort=x",
    "/owner/search?q=lunch&stream=nothing",
    "/owner/search?q=lunch&since=x",
    "/oauth/nothing",
)


@pytest.mark.parametrize("path", REFUSED_READS)
def test_a_refused_read_is_said_in_the_readers_language(path: str) -> None:
    page = marked_browser()[1].get(path)
    assert page.error is not None or 'class="problem"' in page.text
    assert unmarked(page, *DATA, *NAMED) == []


def test_refused_changes_of_an_access_are_said_in_the_readers_language() -> None:
    house, browser = marked_browser()
    allow(browser, house.ask(mail_request()))
    (grant,) = house.rows(GrantRow)
    access = f"/owner/access/{grant.grant_id}"
    shown = browser.get(access)
    refused = {
        "too long a name": browser.submit(shown, f"{access}/name", name="a" * 2_000),
        "too long results": browser.submit(shown, f"{access}/limits", result_chars="5"),
        "no number": browser.submit(shown, f"{access}/limits", records_per_day="many"),
        "no form": browser.post(f"{access}/pause", [], **{"content-type": "text/plain"}),
        "no such way": browser.send("PUT", access),
        "another page": browser.post(f"{access}/pause", [("_csrf", "x")]),
        "too much": browser.post(f"{access}/name", [("name", "a" * 2_000_000)]),
    }
    for why, page in refused.items():
        assert page.error is not None, why
        assert unmarked(page, *DATA, *NAMED) == [], why


def test_refused_sign_ins_and_requests_are_said_in_the_readers_language() -> None:
    house, browser = marked_browser()
    path = house.ask(mail_request())
    shown = browser.get(path)
    browser.submit(shown, path, action="deny")
    refused = {"decided": browser.submit(shown, path, action="deny"), "closed": browser.get(path)}
    house.sign_in.set_password("a long enough password")
    stranger = house.browser()
    for number in range(6):
        login = stranger.get("/owner/login")
        refused[f"wrong {number}"] = stranger.submit(login, "/owner/login", password="no")
    assert refused["wrong 5"].status == 429
    device = house.signed_in()
    code = device.submit(device.get("/device"), "/device", user_code="XXXX-XXXX")
    for why, page in {**refused, "code": code}.items():
        assert page.error is not None, why
        assert unmarked(page, *DATA, *NAMED) == [], why


def test_pages_before_and_after_sign_in_say_nothing_that_no_catalogue_holds() -> None:
    house, browser = marked_browser()
    house.ask(None)
    pages = {path: browser.get(path) for path in ("/owner/", "/owner/sign-ins")}
    hosts = [each.host for each in host_connections(house.origin)]
    stranger = house.browser()
    pages |= {path: stranger.get(path) for path in ("/owner/login", "/owner/enter?t=x")}
    accounts = ("Home mailbox", "Work mailbox", "Checking account")
    for path, page in pages.items():
        assert unmarked(page, *DATA, *FROM, *hosts, *accounts) == [], path
    places = browser.get("/owner/locale")
    assert unmarked(places, *DATA, *options(places)) == []


def test_pages_of_records_access_and_apps_say_nothing_that_no_catalogue_holds() -> None:
    house, browser = marked_browser()
    allow(browser, house.ask(mail_request()))
    house.collect()
    (grant,) = house.rows(GrantRow)
    detail = AskedDetail(b"s", "/v1/search?q=lunch&limit=1", ("m001", "gone"))
    for number in (1, 2):
        line = entry(
            number,
            client_id="cli_notes",
            grant_id=grant.grant_id,
            stream="messages",
            connection_id=HOME,
            request_id="req_1",
            at_ns=house.clock.now_ns,
            detail=detail,
        )
        house.disclosures.append_disclosures([line])
    figures: dict[str, object] = {"empty": 9, "searches": 10}
    alarm = ReadingAlarmRow(
        alarm_id="alm_1",
        held_id=grant.grant_id,
        client_id="cli_notes",
        rule="empty_searches",
        at_ns=house.clock.now_ns,
        detail=figures,
        paused=True,
    )
    house.insert(alarm)
    house.insert(
        CanaryRow(
            connection_id=HOME,
            stream="messages",
            key="m003",
            planted_at_ns=house.clock.now_ns,
        )
    )
    access = f"/owner/access/{grant.grant_id}"
    messages = f"/owner/records/{HOME}/messages"
    paths = (
        "/owner/access",
        "/owner/access/ended",
        access,
        f"{access}/records/{HOME}/messages/m001",
        f"{access}/search?q=lunch",
        "/owner/records",
        "/owner/days",
        "/owner/people",
        messages,
        f"{messages}?filter[from_name]=Alan+Turing&since=2026-01-01&until=2027-01-01&as=text",
        f"{messages}/m001",
        f"{messages}/m001/text/body",
        "/owner/search",
        "/owner/search?q=lunch",
        "/owner/search?q=nowhere",
        "/owner/disclosures",
        "/owner/disclosures?client=cli_notes&stream=messages&day=2026-11-18&after=0",
        "/owner/disclosures/1",
        "/owner/clients",
        "/owner/clients/others",
        "/owner/passkeys",
        "/owner/canaries",
        "/device",
    )
    hosts = [each.host for each in host_connections(house.origin)]
    hosts += [f"{date(2026, month, 1):%b}".replace("Sep", "Sept") for month in range(1, 13)]
    for path in paths:
        page = browser.get(path)
        assert page.status == 200, path
        assert unmarked(page, *DATA, *NAMED, *hosts) == [], path
    for ending in ("pause", "revoke"):
        browser.submit(browser.get(access), f"{access}/{ending}")
        assert unmarked(browser.get(access), *DATA, *NAMED) == [], ending
    assert unmarked(browser.get("/owner/access/ended"), *DATA, *NAMED) == []


def options(page: Page) -> list[str]:
    found = re.findall(r"<option[^>]*>([^<⟦]+)<|<optgroup label=\"([^\"]+)\"", page.text)
    return [unescape(one or two) for one, two in found]


def test_a_day_of_the_log_is_the_owners_day() -> None:
    house = Household()
    house.locale.known = OwnerLocale("Europe/Berlin")
    browser = house.signed_in()
    for number, moment in enumerate(("2026-08-23T21:59:59", "2026-08-23T22:00:00"), start=1):
        told = entry(number, at_ns=at(moment), stream=f"stream_{number}")
        house.disclosures.append_disclosures([told])
    seen = browser.get("/owner/disclosures?day=2026-08-24").text
    lines = seen[seen.index('id="lines"') :]
    assert "stream_2" in lines
    assert "stream_1" not in lines


@pytest.mark.parametrize(
    ("day", "zone", "begins"),
    [
        (20_688, "Europe/Berlin", "2026-08-22T22:00:00"),
        (20_688, "UTC", "2026-08-23T00:00:00"),
        (20_751, "Europe/Berlin", "2026-10-24T22:00:00"),
        (20_752, "Europe/Berlin", "2026-10-25T23:00:00"),
    ],
)
def test_a_day_begins_when_it_does_where_the_owner_lives(day: int, zone: str, begins: str) -> None:
    assert start_of_day(day, ZoneInfo(zone)) == at(begins)


def test_a_text_without_a_mark_is_noticed() -> None:
    page = Page(200, Household().browser().get("/icon.svg").headers, "<p>⟦a ⟦b⟧⟧ lost <b>Data</b>")
    assert unmarked(page, "Data") == ["lost"]
