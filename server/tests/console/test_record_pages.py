from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
from msgspec.structs import replace

from pdpp_sources.whatsapp import WhatsAppSource
from personal_server.domain.disclosure import AskedDetail
from personal_server.enforcement.queries import RecordsQuery, Selectors
from personal_server.reading.owner import OwnerReads
from personal_server.reading.records import read_records
from personal_server.semantics.index import PassageIndex
from personal_server.storage.known_declarations import KnownDeclarations
from server.tests.cli.test_disclosures import entry
from server.tests.console.browsing import Browser, Page, marked, numbers, words
from server.tests.console.household import CHECKING, HOME, WORK, Household
from server.tests.console.test_record_lists import filled
from server.tests.semantics.tiny import TinyEmbedder

MESSAGES = f"/owner/records/{HOME}/messages"


def rows(page: Page) -> list[str]:
    """The links of the records of a list or a table."""
    return re.findall(r'(?:<th scope="row">|<span class="what">)<a href="([^"]+)"', page.text)


def links(page: Page, said: str) -> list[str]:
    """Where the links go whose words begin so."""
    found = re.findall(rf'<a [^>]*href="([^"]+)"[^>]*>{re.escape(said)}', page.text)
    return [each.replace("&amp;", "&") for each in found]


def mail(number: str, **members: Any) -> dict[str, Any]:
    return {"id": number, "sent_at": "2020-01-02T03:04:05Z", "subject": "One", **members}


def test_every_stream_is_listed_with_its_count_newest_and_oldest(browser: Browser) -> None:
    page = browser.get("/owner/records")
    assert numbers(page, "total") == [82]
    assert f'href="{MESSAGES}"' in page.text
    accounts = marked(page, "account")
    assert [re.search(r"(\d+) records", each)[1] for each in accounts] == ["30", "40", "12"]  # type: ignore[index]
    assert re.search(r"\d+ \w+ – \d+ \w+ 2026", marked(page, "span")[0])
    assert "cin_" not in words(page)
    assert len(rows(browser.get("/owner/"))) == 0
    assert 'href="/owner/records"' in browser.get("/owner/").text


def test_a_stream_is_a_table_page_by_page(browser: Browser) -> None:
    first = browser.get(MESSAGES)
    assert numbers(first, "total") == [40]
    (further,) = marked(first, "next", "href")
    second = browser.get(further)
    found = rows(first) + rows(second)
    assert len(rows(first)) == 25
    assert len(set(found)) == 40
    assert marked(second, "next", "href") == []
    assert marked(second, "first", "href") == [MESSAGES]


def test_each_view_has_a_link_of_its_own(browser: Browser) -> None:
    sent = browser.get(f"{MESSAGES}?field=from_address&op=&value=grace%40example.org")
    assert sent.status == 303
    view = sent.headers["location"]
    assert unquote(view) == f"{MESSAGES}?filter[from_address]=grace@example.org"
    page = browser.get(view)
    assert numbers(page, "total") == [8]
    assert len(rows(page)) == 8
    (without,) = links(page, "✕")
    assert without == MESSAGES


def test_a_view_is_sorted_both_ways(browser: Browser) -> None:
    oldest = rows(browser.get(f"{MESSAGES}?sort=sent_at"))
    newest = rows(browser.get(f"{MESSAGES}?sort=-sent_at"))
    assert oldest[0].endswith("/m039")
    assert newest[0].endswith("/m000")
    assert 'aria-sort="ascending"' in browser.get(f"{MESSAGES}?sort=sent_at&as=table").text


def test_months_are_counted_and_open_their_records(browser: Browser) -> None:
    page = browser.get(MESSAGES)
    found = re.findall(r'<a href="([^"]+)"><svg.*?</b> ([\d,]+)</a>', page.text)
    assert sum(int(count) for _, count in found) == 40
    for link, count in found:
        month = browser.get(link.replace("&amp;", "&"))
        assert len(rows(month)) == int(count)


def test_a_chosen_month_stands_among_those_of_its_year(house: Household, browser: Browser) -> None:
    dates = [(year, month) for year in range(2001, 2005) for month in range(1, 13)]
    days = [f"{year}-{month:02}-10T00:00:00Z" for year, month in dates]
    house.fill(HOME, "messages", [mail(f"y{day[:7]}", sent_at=day) for day in days])
    whole = browser.get(MESSAGES)
    assert marked(whole, "by-year")
    found = re.findall(r'<li><a href="([^"]+)"', whole.text)
    (year,) = [link for link in found if "since=2002" in link]
    shown = browser.get(year.replace("&amp;", "&"))
    months = re.findall(r"<b>(\w+ 2002)</b> 1", shown.text)
    assert len(months) == 12
    month = browser.get(f"{MESSAGES}?since=2002-03-01&until=2002-04-01")
    assert re.findall(r"<b>(\w+ 2002)</b> 1", month.text) == months
    assert month.text.count('aria-current="true"') == 1
    assert len(rows(month)) == 1


def test_what_takes_too_long_is_counted_when_asked_for(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("personal_server.console.stream_pages.FIGURES_SECONDS", 0.0)
    page = browser.get(f"{MESSAGES}?filter[is_reply]=true")
    assert len(marked(page, "many")) == 1
    assert marked(page, "uncounted")
    (link, *_) = re.findall('data-field="uncounted">.*?<a href="([^"]+)"', page.text)
    assert numbers(browser.get(link.replace("&amp;", "&")), "total") == [20]


def test_values_are_counted_and_open_their_records(browser: Browser) -> None:
    page = browser.get(MESSAGES)
    (link, *_) = links(page, "Grace Hopper</a>")
    assert "Grace Hopper 8" in words(page)
    assert len(rows(browser.get(link))) == 8
    assert "10,000+" not in page.text


def test_a_view_is_read_one_after_the_other(browser: Browser) -> None:
    table = browser.get(f"{MESSAGES}?filter[is_reply]=true")
    (read,) = marked(table, "as-text", "href")
    page = browser.get(read)
    assert page.text.count("stays between us") == 10
    assert rows(page) == []
    assert 'aria-label="Table of records"' not in page.text
    (further,) = marked(page, "next", "href")
    assert "as=text" in further
    assert browser.get(further).text.count("stays between us") == 10
    assert marked(page, "as-list", "href") == [f"{MESSAGES}?filter[is_reply]=true"]
    assert marked(page, "as-table", "href") == [f"{MESSAGES}?filter[is_reply]=true&as=table"]
    assert browser.get(f"{MESSAGES}?as=picture").error == "invalid_request"


def test_nothing_fits_says_what_to_do(browser: Browser) -> None:
    assert marked(browser.get(f"{MESSAGES}?filter[subject]=nothing"), "no-match")


@pytest.mark.parametrize(
    ("path", "error"),
    [
        (f"/owner/records/{HOME}/nothing", "not_found"),
        ("/owner/records/cin_none/messages", "not_found"),
        (f"{MESSAGES}/none", "not_found"),
        (f"{MESSAGES}/m000/text/nothing", "not_found"),
        (f"{MESSAGES}/m000/text/is_reply", "field_not_text"),
        (f"{MESSAGES}/m000/files/subject", "not_found"),
        (f"{MESSAGES}?filter[nothing]=1", "invalid_request"),
        (f"{MESSAGES}?filter[is_reply]=7", "invalid_filter"),
        (f"{MESSAGES}?field=subject&op=like&value=1", "invalid_request"),
        (f"{MESSAGES}?sort=body", "invalid_request"),
        (f"{MESSAGES}?since=yesterday", "invalid_request"),
        (f"{MESSAGES}?cursor=x", "invalid_cursor"),
        (f"{MESSAGES}?filter[subject]={'x' * 600}", "invalid_request"),
        ("/owner/records?from=x", "invalid_request"),
        ("/owner/search?q=lunch&stream=nothing", "invalid_request"),
        ("/owner/search?q=lunch&sort=best", "invalid_request"),
        ("/owner/search?q=lunch&since=soon", "invalid_request"),
    ],
)
def test_links_of_nobody_are_refused(browser: Browser, path: str, error: str) -> None:
    assert browser.get(path).error == error


def test_nothing_is_shown_to_who_is_not_signed_in(house: Household) -> None:
    for path in ("/owner/records", MESSAGES, f"{MESSAGES}/m000", "/owner/search?q=lunch"):
        page = house.browser().get(path)
        assert page.status == 303
        assert "/owner/login" in page.headers["location"]


def test_a_record_shows_its_fields_relations_and_origin(house: Household, browser: Browser) -> None:
    page = browser.get(f"{MESSAGES}/m004")
    text = words(page)
    assert "secret number 4 stays between us" in text
    assert "E-mail" in marked(page, "origin")[0]
    assert not marked(page, "empty")
    assert links(page, "Thread") == [f"{MESSAGES}?filter[thread_id]=t1"]
    assert links(page, "Attachments") == [
        f"/owner/records/{HOME}/attachments?filter[message_id]=m004"
    ]
    assert len(rows(browser.get(links(page, "Thread")[0]))) == 3
    assert marked(page, "no-readers")
    assert house.disclosures.asked_details([1]) == {}


def test_a_record_names_the_apps_that_it_was_given_to(house: Household, browser: Browser) -> None:
    house.client("cli_notes")
    given = entry(
        1,
        client_id="cli_notes",
        connection_id=HOME,
        stream="messages",
        detail=AskedDetail(b"s", "/v1/search?q=rain", ("m003", "m004")),
    )
    house.disclosures.append_disclosures([given])
    assert "Notes app" in words(browser.get(f"{MESSAGES}/m004"))
    assert "Notes app" not in words(browser.get(f"{MESSAGES}/m005"))
    assert "Notes app" not in words(browser.get(f"/owner/records/{WORK}/messages/m004"))


def test_a_long_text_is_cut_with_a_mark_and_read_on_elsewhere(
    house: Household, browser: Browser
) -> None:
    body = "".join(f"line {number} of a very long text\n" for number in range(40_000))
    house.fill(HOME, "messages", [mail("long", body=body, subject="x" * 5_000)])
    table = browser.get(f"{MESSAGES}?sort=sent_at")
    assert "x" * 79 + "…" in table.text
    assert len(table.text) < 100_000
    page = browser.get(f"{MESSAGES}/long")
    assert len(page.text) < 100_000
    assert numbers(page, "whole-text")[-1] == len(body)
    link = marked(page, "whole-text", "href")[-1]
    window = browser.get(link)
    assert len(window.text) < 100_000
    (further,) = marked(window, "next", "href")
    assert further == f"{link}?offset=16384"
    assert browser.get(further).status == 200


HOSTILE = "<script>alert(1)</script>\u202egnp.exe\u2066\x00\x1b'\"><img src=x onerror=a()>"


def test_a_file_is_handed_out_to_be_kept_and_never_run(house: Household, browser: Browser) -> None:
    content = b"<svg onload='alert(1)'></svg>"
    upload, _ = house.records.receive_blob(HOME, [content], "image/svg+xml", 0, 1_000)
    reference = {
        "blob_id": upload.blob_id,
        "mime_type": "image/svg+xml",
        "size_bytes": len(content),
        "filename": "a\u202e\r\nb.svg",
    }
    kept = {"id": "a1", "message_id": "m004", "sent_at": "2020-01-02T03:04:05Z"}
    house.fill(HOME, "attachments", [kept | {"filename": "b.svg", "blob_ref": reference}])
    page = browser.get(f"/owner/records/{HOME}/attachments/a1")
    (link,) = marked(page, "download", "href")
    assert links(page, "Message") == [f"{MESSAGES}/m004"]
    sent = browser.get(link)
    assert sent.text.encode() == content
    assert sent.headers["content-type"] == "application/octet-stream"
    assert sent.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20b.svg"
    assert sent.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert sent.headers["x-content-type-options"] == "nosniff"
    assert browser.head(link).status == 200
    stranger = f"/owner/records/{WORK}/attachments/a1/files/blob_ref"
    assert browser.get(stranger).error == "not_found"


PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def attached(house: Household, content: bytes, mime_type: str, name: str) -> str:
    """The page of a file that came with a message."""
    upload, _ = house.records.receive_blob(HOME, [content], mime_type, 0, 10_000)
    reference = {
        "blob_id": upload.blob_id,
        "mime_type": mime_type,
        "size_bytes": len(content),
        "filename": name,
    }
    kept = {"id": name, "message_id": "m004", "sent_at": "2020-01-02T03:04:05Z"}
    house.fill(HOME, "attachments", [kept | {"filename": name, "blob_ref": reference}])
    return f"/owner/records/{HOME}/attachments/{name}"


def test_a_picture_is_shown_and_what_only_says_so_is_not(
    house: Household, browser: Browser
) -> None:
    path = attached(house, PNG, "image/png", "a.png")
    shown = f"{path}/files/blob_ref/shown"
    assert f'<img class="picture" src="{shown}"' in browser.get(path).text
    sent = browser.get(shown)
    assert sent.headers["content-type"] == "image/png"
    assert sent.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    liar = attached(house, b"<svg onload='alert(1)'></svg>", "image/png", "b.png")
    assert browser.get(f"{liar}/files/blob_ref/shown").error == "not_found"


def test_a_text_is_shown_without_anything_that_runs_or_is_loaded(
    house: Household, browser: Browser
) -> None:
    page = b"<script>alert(1)</script><img src=https://evil.example/a><p style='color:red'>Hello"
    path = attached(house, page, "text/html", "a.html")
    (shown,) = marked(browser.get(path), "shown", "href")
    sent = browser.get(shown)
    policy = sent.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'; frame-ancestors 'none'")
    assert "script" not in policy
    assert "https:" not in policy
    assert "cross-origin-opener-policy" not in sent.headers  # by the standard it would be no page
    assert sent.text.encode() == page
    note = attached(house, b"<b>plain</b>", "text/plain", "a.txt")
    sent = browser.get(f"{note}/files/blob_ref/shown")
    assert sent.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("mime_type", ["image/svg+xml", "application/pdf", "text/javascript"])
def test_what_could_run_is_downloaded_only(
    house: Household, browser: Browser, mime_type: str
) -> None:
    path = attached(house, b"%PDF-1.7 <svg/>", mime_type, "a.bin")
    page = browser.get(path)
    assert "/shown" not in page.text
    assert len(marked(page, "download")) == 1
    assert browser.get(f"{path}/files/blob_ref/shown").error == "not_found"


def test_a_record_stands_among_what_it_belongs_with(house: Household, browser: Browser) -> None:
    attached(house, PNG, "image/png", "a.png")
    page = browser.get(f"{MESSAGES}/m004")
    assert '<strong aria-current="true">Lunch on Thursday?</strong>' in page.text
    assert links(page, "Your invoice") == [f"{MESSAGES}/m005"]
    assert links(page, "a.png") == [f"/owner/records/{HOME}/attachments/a.png"]
    assert links(page, "Home mailbox") == [f"/owner/sources/{HOME}"]


def test_hostile_records_are_harmless_in_every_view(house: Household, browser: Browser) -> None:
    told = mail(
        "bad/../<b>",
        subject=HOSTILE,
        body=HOSTILE * 500,
        from_name=HOSTILE,
        from_address=HOSTILE,
        thread_id=HOSTILE,
        labels=[HOSTILE, HOSTILE],
        links=[{"url": "javascript:alert(1)", "text": HOSTILE}],
    )
    house.fill(HOME, "messages", [told])
    table = browser.get(f"{MESSAGES}?sort=sent_at")
    (link, *_) = rows(table)
    shown = [table, browser.get(link), browser.get(f"{link}/text/body")]
    shown += [browser.get("/owner/search?q=alert"), browser.get("/owner/records")]
    for page in shown:
        assert page.status == 200
        assert "<script" not in page.text
        assert "<img src=x" not in page.text
        assert 'href="javascript' not in page.text
        assert not re.search("[\u202e\u2066\x00\x1b]", page.text)
        assert len(page.text.encode()) < 100_000
        assert "script" not in page.headers["content-security-policy"]


def test_the_owner_looking_is_no_disclosure(house: Household, browser: Browser) -> None:
    for path in ("/owner/records", MESSAGES, f"{MESSAGES}/m004", "/owner/search?q=lunch"):
        assert browser.get(path).status == 200
    assert marked(browser.get("/owner/disclosures"), "no-reads")


def test_a_search_goes_over_everything_and_leads_to_records(browser: Browser) -> None:
    page = browser.get("/owner/search?q=lunch")
    assert not marked(page, "no-results")
    assert re.search(rf'<h3><a href="/owner/records/({HOME}|{WORK})/messages/m\d+"', page.text)
    assert "<mark>" in browser.get("/owner/search?q=secret").text
    narrowed = f"/owner/search?q=secret&account={HOME}"
    (further,) = marked(browser.get(narrowed), "next", "href")
    assert marked(browser.get(further), "first", "href") == [narrowed]
    assert "Bakery" in words(browser.get("/owner/search?q=bakery&sort=newest"))
    assert f"/owner/records/{CHECKING}/" in browser.get("/owner/search?q=bakery").text


def test_a_search_counts_its_hits_and_narrows_by_account_kind_and_days(
    house: Household, browser: Browser
) -> None:
    page = browser.get("/owner/search?q=lunch")
    assert numbers(page, "count") == [len(re.findall("<h3><a", page.text))] == [13]
    chips = marked(page, "chip", "href")
    (work,) = [link for link in chips if WORK in link]
    alone = browser.get(work)
    assert numbers(alone, "count") == [3]
    assert WORK in str(re.findall(r'<h3><a href="([^"]+)"', alone.text))
    assert HOME not in str(re.findall(r'<h3><a href="([^"]+)"', alone.text))
    (back,) = [link for link in marked(alone, "chip", "href") if "account" not in link][:1]
    assert numbers(browser.get(back), "count") == [13]
    (month,) = [link for link in chips if "since=2026-10-19" in link]
    assert 0 < numbers(browser.get(month), "count")[0] < 13
    assert browser.get("/owner/search?q=lunch&account=nothing").error == "not_found"


def test_a_kind_is_named_by_all_sources_that_have_records_of_it(
    house: Household, browser: Browser
) -> None:
    said = {"chat_id": "x", "sent_at": "2026-11-01T10:00:00Z", "author": "Ada", "text": "Lunch"}
    filled(house, WhatsAppSource.declaration, "cin_chat", "messages", [{"id": "c1", **said}])
    page = browser.get("/owner/search?q=lunch")
    assert ">Your chat messages, Your e-mails</option>" in page.text


def test_chips_count_all_hits_of_a_search_or_say_that_they_are_of_a_page(
    browser: Browser,
) -> None:
    page = browser.get("/owner/search?q=secret")
    assert numbers(page, "count") == [52]
    assert len(re.findall("<h3><a", page.text)) == 20
    assert numbers(page, "chip-count") == [40, 12]
    assert not marked(page, "of-page")
    (further,) = marked(page, "next", "href")
    assert numbers(browser.get(further), "chip-count") == [40, 12]
    widened = browser.get("/owner/search?q=secret+stays+zeppelin")  # no record holds all of these
    assert marked(widened, "of-page")
    assert not marked(widened, "chip-count")


def test_a_search_by_meaning_that_looked_everywhere_has_not_stopped(house: Household) -> None:
    house.reads = replace(house.reads, embedder=TinyEmbedder())
    house.app = house.console()
    browser = house.signed_in()
    PassageIndex(house.records, KnownDeclarations(), TinyEmbedder, sleep=lambda _: None)()
    page = browser.get("/owner/search?q=zeppelin&until=1990-01-01")
    assert not marked(page, "stopped")
    assert marked(page, "narrowed")


def test_a_hit_says_its_words_once(browser: Browser) -> None:
    page = browser.get("/owner/search?q=lunch")
    (first, *_) = re.findall(r"<li class=.card.*?</li>", page.text, re.DOTALL)
    assert len(re.findall("Thursday", first)) == 1  # the subject, in which it was found
    assert "messages</" not in first  # the kind by its name
    told = browser.get("/owner/search?q=secret")
    (first, *_) = re.findall(r"<li class=.card.*?</li>", told.text, re.DOTALL)
    assert first.index("<strong>") < first.index("<h3>") < first.index("<mark>")


def test_a_search_without_hits_says_what_to_do(browser: Browser) -> None:
    assert marked(browser.get("/owner/search?q=zeppelinfahrt"), "no-results")
    assert marked(browser.get("/owner/search?q=lunch&until=1990-01-01"), "narrowed")
    ordered = browser.get("/owner/search?q=zzyzx&sort=newest")
    assert (marked(ordered, "narrowed"), len(marked(ordered, "no-results"))) == ([], 1)
    assert marked(browser.get("/owner/search"), "search-help")


def test_a_search_that_cannot_be_is_explained_on_its_page(browser: Browser) -> None:
    page = browser.get("/owner/search?q=%22%22")
    assert page.status == 200
    assert 'class="problem"' in page.text


def test_a_table_shows_what_a_list_of_the_owner_holds(house: Household, browser: Browser) -> None:
    owner = OwnerReads(house.reads, house.store.declarations)
    query = RecordsQuery("messages", Selectors(HOME), limit=100, sort="-sent_at")
    with owner.open(10.0) as (snapshot, authority):
        answer = read_records(house.reads, snapshot, authority, query)
    listed = [each["id"] for each in msgspec.json.decode(msgspec.json.encode(answer.data))]
    first = browser.get(MESSAGES)
    (further,) = marked(first, "next", "href")
    shown = [link.rpartition("/")[2] for link in rows(first) + rows(browser.get(further))]
    assert shown == listed
