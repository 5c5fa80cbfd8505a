"""What the place of an account on the web has, and what it never has."""

from __future__ import annotations

import pytest

from personal_server.app.web_places import WebPlace
from personal_server.feeds.feed_kinds import CALENDARS, JMAP
from personal_server.feeds.fetched_batches import FetchTrouble


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        (CALENDARS, "caldav://ada@dav.example.org/"),  # without TLS, elsewhere than here
        (CALENDARS, "caldavs://ada:s3cret@dav.example.org/"),  # places are shown on pages
        (CALENDARS, "caldavs://dav.example.org/"),
        (CALENDARS, "https://ada@dav.example.org/"),
        (CALENDARS, "caldavs://ada@[::1/"),
        (CALENDARS, "caldavs://ada@\u00fc.example.org/"),
        (CALENDARS, "caldavs+token://ada@dav.example.org/"),  # no token signs in there
        (CALENDARS, "jmaps://ada@dav.example.org/"),
        (JMAP, "jmap://ada@jmap.example.org/"),
        (JMAP, "jmap+token://ada@jmap.example.org/"),
        (JMAP, "jmaps://ada:s3cret@jmap.example.org/"),
        (JMAP, "jmaps://jmap.example.org/"),
        (JMAP, "jmaps://ada@jmap.example.org/?token=1"),
        (JMAP, "https://ada@jmap.example.org/"),
        (JMAP, "jmaps://ada@[::1/"),
    ],
)
def test_a_place_has_a_user_no_password_and_tls(kind: str, place: str) -> None:
    with pytest.raises(FetchTrouble) as caught:
        WebPlace.of(kind, place)
    assert caught.value.code == ("jmap_place" if kind == JMAP else "dav_place")


@pytest.mark.parametrize(
    ("typed", "is_token", "text"),
    [
        ("https://b\u00fccher.example/dav", False, "jmaps://ada@xn--bcher-kva.example/dav"),
        ("JMAP.example.org", True, "jmaps+token://ada@jmap.example.org/"),
        ("https://jmap.example.org:443", False, "jmaps://ada@jmap.example.org/"),
        ("https://jmap.example.org:8443/", False, "jmaps://ada@jmap.example.org:8443/"),
        ("http://127.0.0.1:8080/", False, "jmap://ada@127.0.0.1:8080/"),
        ("http://[::1]/", True, "jmap+token://ada@[::1]/"),
    ],
)
def test_what_was_typed_is_always_the_same_place(typed: str, text: str, *, is_token: bool) -> None:
    place = WebPlace.typed(JMAP, typed, "ada", is_token=is_token)
    assert place.text == text
    assert WebPlace.of(JMAP, text) == place
