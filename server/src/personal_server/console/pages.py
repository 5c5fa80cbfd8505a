"""Pages: templates, their headers, and the answer in JSON where a program asks.

Rule: every page is whole without a script and loads nothing from elsewhere; every value in a
template is escaped.  Source: docs/contract/authorization-server.md 0, 13.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, localcontext
from functools import lru_cache, partial
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from babel.numbers import format_decimal, get_currency_precision
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, RedirectResponse, Response

from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.texts import (
    RENDERED,
    Day,
    Joined,
    Minute,
    Size,
    Text,
    bounded,
    counted,
    message,
    span_of_texts,
    start_of_day,
)
from pdpp_mcp_server.settings import own_command
from personal_server.console import isolation, words
from personal_server.console.isolation import IsolatingEnvironment, attribute_values
from personal_server.console.languages import Language, PageReader, languages, negotiated
from personal_server.console.session import PageRequest
from personal_server.console.static_files import STYLESHEET_PATH, Script
from personal_server.owner_locale import OwnerLocale
from personal_server.web.error_responses import error_headers, json_error
from personal_server.web.replies import NO_STORE
from personal_server.web.responses import page_headers

MOST_DECIMALS, MOST_DIGITS = 8, 400  # a sum of the largest numbers of JSON has some 320
# Values are escaped, so that only templates can write this.
_OWN_LINKS = re.compile(r'\b(href|src|action|formaction)="/(?=(?:owner|consent|device)\b)')


def environment() -> Environment:
    """The templates, their texts still in the language of the source."""
    found = IsolatingEnvironment(
        loader=PackageLoader("personal_server.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    found.policies["ext.i18n.trimmed"] = True
    found.newstyle_gettext = True  # type: ignore[attr-defined] (of the extension)
    return found


@lru_cache(maxsize=8)
def _templates(language: Language, zone: str) -> Environment:
    """The templates for one reader."""
    reader = PageReader(language, ZoneInfo(zone))

    def filled(text: str, values: Mapping[str, Text]) -> Markup:
        attributes = attribute_values(text)
        shown_values = {
            name: reader.html(value) if name in attributes else reader.apart(value)
            for name, value in values.items()
        }
        return Markup(text) % shown_values  # noqa: S704 (the catalogue's own markup)

    def gettext(text: str, /, **values: Text) -> Markup:
        return filled(reader.said(text), values)

    def ngettext(one: str, many: str, num: int, /, **values: Text) -> Markup:
        return filled(reader.said(one, many, num), {"num": num} | values)

    def shown(value: Text, limit: int) -> str:
        return words.shown(reader.text(value), limit)

    filters: dict[str, Callable[..., object]] = {
        "shown": shown,
        "text": reader.text,
        "join": _joined,
        "day": Day,
        "minute": Minute,
        "span": span_of_texts,
        "number": reader.text,
        "bounded": _bounded,
        "counted": counted,
        "field_words": words.field_words,
        "monogram": words.monogram,
        "browser": words.browser_name,
        "bytes": Size,
        "piece": escape,
        "money": partial(_money, language),
        "decimal": partial(_decimal, language),
        **_isolations(reader),
    }
    found = environment()
    found.filters.update(filters)
    spoken: dict[str, Any] = {"gettext": gettext, "ngettext": ngettext, "known": reader.known}
    spoken["language"] = language.tag
    # A command that a page names can be typed as it stands, in any folder.
    spoken["own_command"] = partial(own_command, from_here=False)
    found.globals = {**found.globals, **spoken}
    return found


def _joined(values: Iterable[Text], glue: str = "") -> Joined:
    return Joined(tuple(values), glue)


def _bounded(value: int) -> Joined:
    return Joined((bounded(value),))


def _money(language: Language, amount: Decimal, currency: str) -> str:
    """An amount with the decimals of its currency, or with all it has if they are more."""
    decimals = get_currency_precision(currency)
    pattern = f"#,##0.{'0' * decimals}{'#' * (MOST_DECIMALS - decimals)}"
    with localcontext(prec=MOST_DIGITS):
        return format_decimal(amount, pattern, language.locale)


def _decimal(language: Language, figure: Decimal, places: int = 0) -> str:
    """A figure to the hundredth, a large one to the whole, a small one to four digits.

    `places` fills up with noughts, so that the figures of a column stand below each other.
    """
    size = abs(figure)
    pattern = (
        "#,##0"
        if size >= 10_000
        else f"#,##0.{'00'[:places]:#<2}"
        if size >= 1 or not size
        else "0.####"
    )
    with localcontext(prec=MOST_DIGITS):
        return format_decimal(figure, pattern, language.locale)


def _isolations(reader: PageReader) -> dict[str, Callable[[object], object]]:
    """What `{{ }}` shows of a value, by where it stands."""

    def isolated(value: object) -> object:
        return reader.apart(value) if isinstance(value, (str, *RENDERED)) else value

    def plain(value: object) -> object:
        if isinstance(value, RENDERED):
            return reader.text(value)
        return isolation.plain(value) if isinstance(value, Markup) else value

    def named(value: object) -> object:
        return isolation.named(value) if type(value) is str else plain(value)

    return {"isolated": isolated, "plain": plain, "named": named}


TITLES: Mapping[int, Text] = {
    400: message("That did not work"),
    401: message("Sign in first"),
    403: message("Not allowed"),
    404: message("Not found"),
    405: message("Not possible on this page"),
    409: message("Something changed meanwhile"),
    410: message("This request is closed"),
    413: message("Too much for one request"),
    429: message("Too many attempts"),
}

NEXT_STEPS: Mapping[str, Text] = {
    "invalid_client": message(
        "Nothing was shared. Remove this server from the app and add it again,"
        " so that the app registers again."
    ),
    "invalid_redirect_uri": message(
        "Nothing was shared. The app wants the answer at an address that the app "
        "never registered. Remove this server from the app and add it again; if "
        "that does not help, do not trust the app."
    ),
    "invalid_request_uri": message("Nothing was shared. Start again from the app."),
    "sign_in_link_invalid": message(
        "On the computer that runs this server, type the command pdpp owner link, and open"
        " the link that it prints."
    ),
}
"""What a person can do about errors whose own words are for the app's developer."""


_WITH_OPENER = re.compile(r"/owner/(login|enter)([/?]|$)|/(?!owner([/?]|$))")
"""Pages through which an app's window goes, until the app has it back and may use its opener."""
_INSTALLING = {"worker_src": "'self'", "manifest_src": "'self'"}


def console_headers(
    visit: PageRequest,
    form_target: str | None = None,
    script: Script | None = None,
    language: str | None = None,
) -> dict[str, str]:
    """The headers of every page; no window of another site reaches one that needs no opener.

    `form_target` is where a form may be redirected to; `script` is the one of ours that runs;
    `language` is the page's.
    """
    headers = {
        **page_headers(
            **({} if script is None else {"script_src": "'self'"}),
            **({"connect_src": "'self'"} if script is not None and script.asks else {}),
            **(_INSTALLING if script is not None and script.installs else {}),
            style_src="'self'",
            img_src="'self' data:",
            font_src="'self'",
            form_action="'self'" if form_target is None else f"'self' {form_target}",
        ),
        **NO_STORE,
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    }
    if language is not None:
        headers |= {"Content-Language": language, "Vary": "Accept-Language"}
    if not _WITH_OPENER.match(visit.target):
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
    if visit.origin.startswith("https:"):
        headers["Strict-Transport-Security"] = "max-age=31536000"
    return headers


def form_target(redirect_uri: str | None) -> str | None:
    """Origin (or scheme) of a checked redirect URI, for `form-action`."""
    if redirect_uri is None:
        return None
    parts = urlsplit(redirect_uri)
    if parts.scheme in ("http", "https"):
        return f"{parts.scheme}://{parts.netloc}"
    return f"{parts.scheme}:"


class Templates:
    """Renders pages for one server, in the language and zone of whoever reads."""

    def __init__(
        self,
        server_name: str,
        locale: Callable[[], OwnerLocale] = OwnerLocale,
        offered: Callable[[], Mapping[str, Language]] = languages,
    ) -> None:
        self._server_name = server_name
        self._locale = locale
        self.offered = offered

    @property
    def zone(self) -> ZoneInfo:
        """Where the owner lives."""
        return ZoneInfo(self._locale().zone)

    def day_start(self, day: int) -> int:
        """When a day, counted from 1970, begins where the owner lives.  Units: nanoseconds."""
        return start_of_day(day, ZoneInfo(self._locale().zone))

    def show(
        self,
        visit: PageRequest,
        template: str,
        values: Mapping[str, object],
        *,
        status: int = 200,
        target: str | None = None,
        script: Script | None = None,
    ) -> Response:
        """A page; `target` and `script` as in `console_headers`."""
        locale, offered = self._locale(), self.offered()
        language = offered.get(locale.language or "") or negotiated(visit.languages, offered)
        body = (
            _templates(language, locale.zone)
            .get_template(template)
            .render(
                {
                    "server_name": self._server_name,
                    "stylesheet": STYLESHEET_PATH,
                    "script": None if script is None else script.path,
                    "visit": visit,
                    "locale": locale,
                    **values,
                }
            )
        )
        if visit.place:
            body = _OWN_LINKS.sub(rf'\1="{visit.place}/', body)
        headers = console_headers(visit, target, script, language.tag)
        return HTMLResponse(body, status, headers)

    def nothing(self, visit: PageRequest) -> Response:
        """Nothing came since the page was made."""
        return Response(status_code=204, headers=console_headers(visit))

    def go(self, visit: PageRequest, location: str, *, status: int = 303) -> Response:
        """Send the browser on with 303, so that a reload repeats nothing, or its form with 307."""
        placed = visit.place + location if location.startswith("/") else location
        return RedirectResponse(placed, status, console_headers(visit))

    def failure(self, visit: PageRequest, error: PersonalServerError, *, as_json: bool) -> Response:
        """An error as a page, or in the server family."""
        response = self._json(visit, error) if as_json else self._page(visit, error)
        response.headers.update(error_headers(error))
        return response

    def _page(self, visit: PageRequest, error: PersonalServerError) -> Response:
        back_to_app = error.members.get("back_to_app")
        return self.show(
            visit,
            "failure.html",
            {
                "title": TITLES.get(error.status, message("Something went wrong")),
                "code": error.code,
                "message": error.text,
                "wait": _wait(error.members.get("retry_after_seconds")),
                "next_step": error.members.get("next_step") or NEXT_STEPS.get(error.code),
                "back_to_app": back_to_app,
                "app_host": urlsplit(str(back_to_app)).netloc if back_to_app else None,
            },
            status=error.status,
        )

    def _json(self, visit: PageRequest, error: PersonalServerError) -> Response:
        error.members.pop("back_to_app", None)  # a link of the page, no member of the wire
        response = json_error(error, visit.request_id)
        response.headers.update(console_headers(visit))
        return response


def _wait(seconds: object) -> Text | None:
    if not isinstance(seconds, int):
        return None
    if seconds < 60:
        return counted(seconds, "second")
    return counted(-(-seconds // 60), "minute")
