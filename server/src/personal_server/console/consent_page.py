"""The consent page: shown, filled in by its shortcuts, previewed, decided.

Rule: `POST` is the only way to a grant in a browser, and it grants exactly what the page showed.
A shortcut (a button that fills in choices, since no script runs) only changes what a person could
have typed; narrowing judges the result like any other form.
Source: docs/contract/authorization-server.md 6, 7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from pdpp_kernel.errors import InvalidRequest, OwnerSessionRequired, PersonalServerError
from pdpp_kernel.oauth_errors import (
    AiTrainingConsentRequired,
    NotANarrowing,
    ReviewChanged,
    ReviewStale,
)
from pdpp_kernel.texts import Text, message
from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.consent.bundles import with_bundle
from personal_server.consent.choices import Choices, StreamChoice, parse_choices
from personal_server.consent.offers import EntryOffer, StreamOffer
from personal_server.consent.selections import CONTINUOUS
from personal_server.consent.successors import SourceStream, choices_like, since_at
from personal_server.console.consent_changes import Differences, differences_of
from personal_server.console.consent_streams import (
    NOTHING_REFUSED,
    HeldValues,
    RefusedBox,
    form_prefix,
)
from personal_server.console.consent_view import consent_view
from personal_server.console.consent_words import SINGLE_ENDS
from personal_server.console.pages import Templates, form_target
from personal_server.console.passkeys import rendered
from personal_server.console.session import PageRequest, PageRoute, acting
from personal_server.console.static_files import DECIDING
from personal_server.granting.decisions import Decided, Granting
from personal_server.granting.owner_sessions import Clock, OwnerSignIn
from personal_server.granting.passkeys import APPROVE, Passkeys
from personal_server.granting.reviews import Review
from personal_server.reading.preview import EvidenceReader
from personal_server.web.forms import Form

QUICK_DAYS: tuple[tuple[str, Text], ...] = (
    ("30", message("Of the last 30 days")),
    ("90", message("Of the last 90 days")),
    ("365", message("Of the last year")),
)
SEVERAL = "several"
NOTHING_DIFFERENT = Differences()
Change = Callable[[StreamOffer, StreamChoice], StreamChoice]


_SIGN_IN_AGAIN = "You signed in more than 15 minutes ago. Sign in again to allow this access."


class Note(msgspec.Struct, frozen=True):
    """What stands above a page that is shown again."""

    status: int
    code: str
    message: str
    differences: Differences = NOTHING_DIFFERENT
    refused: Mapping[str, RefusedBox] = msgspec.field(default_factory=dict[str, RefusedBox])


class ConsentPages(msgspec.Struct, frozen=True):
    """`/consent/{handle}`."""

    granting: Granting
    evidence: EvidenceReader
    passkeys: Passkeys
    sign_in: OwnerSignIn
    pages: Templates
    clock: Clock

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        return (
            PageRoute("GET", "/consent/{handle}", self.show, frozenset({"like"})),
            PageRoute("POST", "/consent/{handle}", self.decide),
        )

    def show(self, visit: PageRequest) -> Response:
        """The request with what was chosen so far, or filled in like an earlier grant.

        Raises: NotFound, RequestClosed.
        """
        review = self.granting.view(visit.path["handle"], acting(visit))
        like = next((h for h in review.earlier if h.id == visit.query.get("like")), None)
        if like is not None:
            entries = choices_like(review.offers, like.living_grants)
            choices = replace(review.choices, entries=entries)
            review = self._preview(visit, choices, review)
        return self._page(visit, review)

    def decide(self, visit: PageRequest) -> Response:
        """Preview, allow, deny or sign in again; what cannot be meant is shown as it was typed.

        Raises: InvalidRequest, NotFound, RequestClosed, ApprovalConflict.
        """
        try:
            return self._decide(visit)
        except NotANarrowing as error:
            review, refused = self._as_far_as_possible(visit)
            return self._page(visit, review, replace(_note(error), refused=refused))

    def _as_far_as_possible(self, visit: PageRequest) -> tuple[Review, dict[str, RefusedBox]]:
        """What of a form can be meant, and the boxes that cannot; else what was chosen before."""
        handle, form = visit.path["handle"], visit.form
        refused: dict[str, RefusedBox] = {}
        while True:
            try:
                review = self.granting.choose(handle, posted_choices(form), acting(visit))
            except NotANarrowing as error:
                box = error.param or ""
                rest = without_box(form, box)
                if len(rest) == len(form):
                    return self.granting.view(handle, acting(visit)), {}
                typed = "\n".join(value for name, value in visit.form if name == box)
                refused[box] = RefusedBox(typed, error.text, first=not refused)
                form = rest
            else:
                return review, refused

    def _decide(self, visit: PageRequest) -> Response:
        for shortcut in ("quick", "view", "bundle"):
            if visit.value(shortcut) is not None:
                return self._shortcut(visit, shortcut)
        choices = posted_choices(visit.form)
        match visit.value("action"):
            case "preview":
                handle = visit.path["handle"]
                return self._page(visit, self.granting.choose(handle, choices, acting(visit)))
            case "approve":
                return self._approve(visit, choices)
            case "again":
                # Kept before this session ends, so that the next one finds them.
                self.granting.choose(visit.path["handle"], choices, acting(visit))
                return self.pages.go(visit, "/owner/logout", status=307)
            case "deny":
                return self._deny(visit)
            case _:
                raise InvalidRequest("Choose one of the buttons of the page.", param="action")

    def _shortcut(self, visit: PageRequest, shortcut: str) -> Response:
        handle, value = visit.path["handle"], visit.value(shortcut) or ""
        choices = posted_choices(visit.form)
        review = self.granting.choose(handle, choices, acting(visit))
        if shortcut == "quick":
            filled = with_last_days(review, value, self.clock())
        elif shortcut == "bundle":
            filled = with_ready_fields(review, value)
        else:
            filled = with_view(review, value)
        return self._page(visit, self.granting.choose(handle, filled, acting(visit)))

    def _preview(self, visit: PageRequest, choices: Choices, otherwise: Review) -> Review:
        try:
            return self.granting.choose(visit.path["handle"], choices, acting(visit))
        except NotANarrowing:
            return otherwise  # an earlier grant that does not fit this request fills in nothing

    def _approve(self, visit: PageRequest, choices: Choices) -> Response:
        if leaves_all_out(visit.form, choices):
            return self._deny(visit)
        revision = visit.value("review") or ""
        signature = None
        if visit.value("passkey"):
            answer = visit.value("passkey") or ""
            signature = self.passkeys.verify(visit.origin, answer, APPROVE, revision)
        elif not self._is_proven(visit):
            review = self.granting.choose(visit.path["handle"], choices, acting(visit))
            if review.reaches_further:
                return self._page(visit, review, _note(OwnerSessionRequired(_SIGN_IN_AGAIN)))
        try:
            decided = self.granting.approve(
                visit.path["handle"], choices, revision, acting(visit), signature
            )
        except AiTrainingConsentRequired as error:
            review = self.granting.choose(visit.path["handle"], choices, acting(visit))
            return self._page(visit, review, _note(error))
        except (ReviewChanged, ReviewStale) as error:
            return self._again(visit, choices, error)
        return self._decided(visit, decided, allowed=True)

    def _deny(self, visit: PageRequest) -> Response:
        decided = self.granting.deny(visit.path["handle"], acting(visit))
        return self._decided(visit, decided, allowed=False)

    def _again(self, visit: PageRequest, choices: Choices, error: PersonalServerError) -> Response:
        """The page of what would be decided now, with what is different marked.

        Choices that what changed has made impossible give way to those of the request.
        """
        handle = visit.path["handle"]
        try:
            review = self.granting.choose(handle, choices, acting(visit))
        except NotANarrowing:
            review = self.granting.view(handle, acting(visit))
        return self._page(visit, review, _note(error, differences_of(review)))

    def _is_proven(self, visit: PageRequest) -> bool:
        """Whether the sign-in still stands for the owner's will.

        At its place on a loopback origin (13.2) an owner without password and passkey could prove
        no more by a new link: who sits there can make one.
        """
        if visit.owner().is_fresh(self.clock()):
            return True
        return bool(visit.place) and not (self.sign_in.has_password() or self.passkeys.listed())

    def _values(self, review: Review) -> HeldValues:
        """What the streams that are wanted could be limited to."""
        return {
            form_prefix(offer, stream): self.evidence.values(stream.connections, stream.stream)
            for offer in review.offers
            if isinstance(offer, EntryOffer)
            for stream in offer.streams
            if stream.required or review.choices.entry(offer.index).stream(stream.name).wanted
        }

    def _page(self, visit: PageRequest, review: Review, note: Note | None = None) -> Response:
        figures = self.evidence.gather(review.prospective()) if review.terms.entries else {}
        changed = frozenset[SourceStream]() if note is None else note.differences.changed
        refused = NOTHING_REFUSED if note is None else note.refused
        redirect = None if review.request is None else review.request.redirect_uri
        revision = review.revision
        signing = revision and self.passkeys.to_sign(visit.origin, APPROVE, revision)
        return self.pages.show(
            visit,
            "consent.html",
            {
                "view": consent_view(
                    review,
                    figures,
                    self.evidence.stored_counts(),
                    changed,
                    self._values(review),
                    refused,
                ),
                "note": note,
                "tried": visit.value("action") == "approve",
                "csrf": visit.owner().csrf,
                "fresh": self._is_proven(visit) or not review.reaches_further,
                "passkey": rendered(signing or None),
                "quick_days": QUICK_DAYS,
            },
            status=200 if note is None else note.status,
            target=form_target(redirect),
            script=None if review.impossible else DECIDING,
        )

    def _decided(self, visit: PageRequest, decided: Decided, *, allowed: bool) -> Response:
        if decided.held_id is not None:
            return self.pages.go(visit, f"/owner/access/{decided.held_id}")
        if decided.redirect_to is not None:
            return self.pages.go(visit, decided.redirect_to)
        return self.pages.show(visit, "decided.html", {"allowed": allowed, "as_owner": False})


def _note(error: PersonalServerError, different: Differences = NOTHING_DIFFERENT) -> Note:
    return Note(error.status, error.code, error.text, different)


def posted_choices(form: Form) -> Choices:
    """The choices of a posted form.  Raises: NotANarrowing.

    Without a script the ends to choose from follow the mode only with the next page; an end of
    the other mode then means the usual one, which is shown before anything is decided.
    """
    choices = parse_choices(form)
    if choices.mode == CONTINUOUS and choices.expiry in dict(SINGLE_ENDS):
        return replace(choices, expiry=None)
    return choices


def leaves_all_out(form: Form, choices: Choices) -> bool:
    """Whether every entry of several was left out: a denial.

    Source: docs/contract/authorization-server.md 6.2.
    """
    several = any(name == SEVERAL for name, _ in form)
    return several and not any(entry.keep for entry in choices.entries.values())


def without_box(form: Form, box: str) -> Form:
    """A form without one of its boxes: of a limit without what was typed, else what was ticked."""
    twin = f"only.{box.removeprefix('others.')}" if box.startswith("others.") else box
    for name in (box, twin):
        rest = tuple(each for each in form if each[0] != name)
        if any(value.strip() for at, value in form if at == name):
            return rest
    return form


def with_last_days(review: Review, days: str, now_ns: int) -> Choices:
    """Every stream that has a time: only the last days, as far as they were asked for."""
    if days not in dict(QUICK_DAYS):
        raise NotANarrowing("Your choice is not one of those offered.")
    start = (now_ns // DAY_NANOSECONDS - int(days)) * DAY_NANOSECONDS
    return _each_stream(review, lambda stream, choice: since_at(stream, choice, start))


def with_ready_fields(review: Review, name: str) -> Choices:
    """One entry with a bundle of fields; `name` is `{entry}.{bundle}`.  Raises: NotANarrowing."""
    index, _, bundle = name.partition(".")
    entries = {
        offer.index: with_bundle(offer, review.choices.entry(offer.index), bundle)
        for offer in review.offers
        if isinstance(offer, EntryOffer) and str(offer.index) == index
    }
    return replace(review.choices, entries={**review.choices.entries, **entries})


def with_view(review: Review, name: str) -> Choices:
    """One stream cut to a declared view; `name` is `{entry}.{stream}.{view}`."""
    index, _, rest = name.partition(".")
    stream_name, _, view_id = rest.rpartition(".")

    def cut(stream: StreamOffer, choice: StreamChoice) -> StreamChoice:
        view = stream.stream.view(view_id)
        if stream.name != stream_name or view is None:
            return choice
        fields = frozenset(view.fields) & frozenset(stream.fields)
        return replace(choice, fields=fields | frozenset(stream.stream.floor))

    return _each_stream(review, cut, only=index)


def _each_stream(review: Review, change: Change, *, only: str | None = None) -> Choices:
    entries = dict(review.choices.entries)
    for offer in review.offers:
        if not isinstance(offer, EntryOffer) or only not in (None, str(offer.index)):
            continue
        entry = review.choices.entry(offer.index)
        streams = {s.name: change(s, entry.stream(s.name)) for s in offer.streams}
        entries[offer.index] = replace(entry, streams=streams)
    return replace(review.choices, entries=entries)
