"""The consent page: shown, previewed, decided.

Rule: `POST` is the only way to a grant in a browser, and it grants exactly what the page showed.
Source: AS contract 6, 7.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from personal_server.consent.choices import Choices
from personal_server.console import consent_form
from personal_server.console.consent_differences import Differences, differences_of
from personal_server.console.consent_view import consent_view
from personal_server.console.frame import PageRoute
from personal_server.console.pages import Pages, form_target
from personal_server.console.visits import Visit, acting
from personal_server.errors import (
    AiTrainingConsentRequired,
    InvalidRequest,
    NotANarrowing,
    PersonalServerError,
    ReviewChanged,
    ReviewStale,
)
from personal_server.granting.decisions import Decided, Granting
from personal_server.granting.owner_sessions import Clock
from personal_server.granting.reviews import Review
from personal_server.reading.preview import EvidenceReader

NOTHING_DIFFERENT = Differences()


@dataclass(frozen=True, slots=True)
class Note:
    """What stands above a page that is shown again."""

    status: int
    code: str
    message: str
    differences: Differences = NOTHING_DIFFERENT


@dataclass(frozen=True, slots=True)
class ConsentPages:
    """`/consent/{handle}`."""

    granting: Granting
    evidence: EvidenceReader
    pages: Pages
    clock: Clock

    def routes(self) -> tuple[PageRoute, ...]:
        """Where they stand."""
        return (
            PageRoute("GET", "/consent/{handle}", self.show, frozenset({"like"})),
            PageRoute("POST", "/consent/{handle}", self.decide),
        )

    def show(self, visit: Visit) -> Response:
        """The request as it was asked, or filled in like an earlier grant.

        Raises: NotFound, RequestClosed.
        """
        review = self.granting.view(visit.path["handle"], acting(visit))
        like = next((h for h in review.earlier if h.id == visit.query.get("like")), None)
        if like is not None:
            choices = consent_form.like_earlier(review, like)
            review = self._preview(visit, choices, review)
        return self._page(visit, review)

    def decide(self, visit: Visit) -> Response:
        """Preview, allow or deny; a form that cannot be meant shows the request again.

        Raises: InvalidRequest, NotFound, RequestClosed, ApprovalConflict.
        """
        try:
            return self._decide(visit)
        except NotANarrowing as error:
            return self._page(visit, self._as_far_as_possible(visit), _note(error))

    def _as_far_as_possible(self, visit: Visit) -> Review:
        """The posted choices without their times, which people mistype; else the request anew."""
        handle = visit.path["handle"]
        try:
            choices = consent_form.without_times(consent_form.posted_choices(visit.form))
            return self.granting.preview(handle, choices, acting(visit))
        except NotANarrowing:
            return self.granting.view(handle, acting(visit))

    def _decide(self, visit: Visit) -> Response:
        for shortcut in ("quick", "view"):
            if visit.value(shortcut) is not None:
                return self._shortcut(visit, shortcut)
        choices = consent_form.posted_choices(visit.form)
        match visit.value("action"):
            case "preview":
                handle = visit.path["handle"]
                return self._page(visit, self.granting.preview(handle, choices, acting(visit)))
            case "approve":
                return self._approve(visit, choices)
            case "deny":
                return self._deny(visit)
            case _:
                raise InvalidRequest("Choose one of the buttons of the page.", param="action")

    def _shortcut(self, visit: Visit, shortcut: str) -> Response:
        handle, value = visit.path["handle"], visit.value(shortcut) or ""
        choices = consent_form.posted_choices(visit.form)
        review = self.granting.preview(handle, choices, acting(visit))
        if shortcut == "quick":
            filled = consent_form.with_last_days(review, value, self.clock())
        else:
            filled = consent_form.with_view(review, value)
        return self._page(visit, self.granting.preview(handle, filled, acting(visit)))

    def _preview(self, visit: Visit, choices: Choices, otherwise: Review) -> Review:
        try:
            return self.granting.preview(visit.path["handle"], choices, acting(visit))
        except NotANarrowing:
            return otherwise  # an earlier grant that does not fit this request fills in nothing

    def _approve(self, visit: Visit, choices: Choices) -> Response:
        if consent_form.leaves_all_out(visit.form, choices):
            return self._deny(visit)
        revision = visit.value("review") or ""
        try:
            decided = self.granting.approve(visit.path["handle"], choices, revision, acting(visit))
        except AiTrainingConsentRequired as error:
            review = self.granting.preview(visit.path["handle"], choices, acting(visit))
            return self._page(visit, review, _note(error))
        except (ReviewChanged, ReviewStale) as error:
            return self._again(visit, choices, error)
        return self._decided(visit, decided, allowed=True)

    def _deny(self, visit: Visit) -> Response:
        decided = self.granting.deny(visit.path["handle"], acting(visit))
        return self._decided(visit, decided, allowed=False)

    def _again(self, visit: Visit, choices: Choices, error: PersonalServerError) -> Response:
        """The page of what would be decided now, with what is different marked.

        Choices that what changed has made impossible give way to those of the request.
        """
        handle = visit.path["handle"]
        try:
            review = self.granting.preview(handle, choices, acting(visit))
        except NotANarrowing:
            review = self.granting.view(handle, acting(visit))
        return self._page(visit, review, _note(error, differences_of(review)))

    def _page(self, visit: Visit, review: Review, note: Note | None = None) -> Response:
        figures = self.evidence.gather(review.prospective()) if review.terms.entries else {}
        changed = frozenset[tuple[str, str]]() if note is None else note.differences.changed
        redirect = None if review.request is None else review.request.redirect_uri
        return self.pages.show(
            visit,
            "consent.html",
            {
                "view": consent_view(review, figures, self.evidence.kept(), changed),
                "note": note,
                "csrf": visit.owner().csrf,
                "quick_days": consent_form.QUICK_DAYS,
            },
            status=200 if note is None else note.status,
            target=form_target(redirect),
        )

    def _decided(self, visit: Visit, decided: Decided, *, allowed: bool) -> Response:
        if decided.redirect_to is not None:
            return self.pages.go(visit, decided.redirect_to)
        return self.pages.show(visit, "decided.html", {"allowed": allowed, "as_owner": False})


def _note(error: PersonalServerError, different: Differences = NOTHING_DIFFERENT) -> Note:
    """What was wrong with the form."""
    return Note(error.status, error.code, error.message, different)
