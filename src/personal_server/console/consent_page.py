"""The consent page: shown, previewed, decided.

Rule: `POST` is the only way to a grant in a browser, and it grants exactly what the page showed.
Source: AS contract 6, 7.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from starlette.responses import Response

from personal_server.consent.choices import Choices
from personal_server.consent.refusals import (
    AiTrainingConsentRequired,
    NotANarrowing,
    ReviewChanged,
    ReviewStale,
)
from personal_server.console import consent_form
from personal_server.console.consent_view import consent_view
from personal_server.console.consent_words import changed_streams, differences
from personal_server.console.frame import PageRoute
from personal_server.console.pages import Pages, form_target
from personal_server.console.visits import Visit, acting
from personal_server.errors import InvalidRequest, PersonalServerError
from personal_server.operations.evidence import EvidenceReader
from personal_server.operations.granting import Decided, Granting
from personal_server.operations.reviewing import Review
from personal_server.operations.signing_in import Clock

KEPT_ARTIFACTS = 200
Artifact = Mapping[str, object]


class ShownArtifacts:
    """The artifacts shown lately, by revision: what a changed one is compared with."""

    def __init__(self) -> None:
        self._shown: OrderedDict[str, Artifact] = OrderedDict()
        self._guard = Lock()

    def keep(self, review: Review) -> None:
        """Remember what a page shows."""
        if review.revision is None or review.artifact is None:
            return
        with self._guard:
            self._shown[review.revision] = review.artifact
            while len(self._shown) > KEPT_ARTIFACTS:
                self._shown.popitem(last=False)

    def get(self, revision: str) -> Artifact:
        """The artifact of a revision; empty if it was forgotten."""
        with self._guard:
            return self._shown.get(revision, {})


@dataclass(frozen=True, slots=True)
class Note:
    """What stands above a page that is shown again."""

    status: int
    code: str
    message: str
    differences: tuple[str, ...] = ()
    changed: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class ConsentPages:
    """`/consent/{handle}`."""

    granting: Granting
    evidence: EvidenceReader
    pages: Pages
    clock: Clock
    shown: ShownArtifacts = field(default_factory=ShownArtifacts)

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
            review = self.granting.view(visit.path["handle"], acting(visit))
            return self._page(visit, review, _note(error))

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
            return self._again(visit, choices, revision, error)
        return self._decided(visit, decided, allowed=True)

    def _deny(self, visit: Visit) -> Response:
        decided = self.granting.deny(visit.path["handle"], acting(visit))
        return self._decided(visit, decided, allowed=False)

    def _again(
        self, visit: Visit, choices: Choices, revision: str, error: PersonalServerError
    ) -> Response:
        """The page of what would be decided now, with what is different marked."""
        review = self.granting.preview(visit.path["handle"], choices, acting(visit))
        before, after = self.shown.get(revision), review.artifact or {}
        known = bool(before and after)
        note = Note(
            status=error.status,
            code=error.code,
            message=error.message,
            differences=tuple(differences(before, after)) if known else (),
            changed=changed_streams(before, after) if known else frozenset(),
        )
        return self._page(visit, review, note)

    def _page(self, visit: Visit, review: Review, note: Note | None = None) -> Response:
        self.shown.keep(review)
        figures = self.evidence.gather(review.prospective()) if review.terms.entries else {}
        changed = frozenset[tuple[str, str]]() if note is None else note.changed
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
        return self.pages.show(visit, "decided.html", {"allowed": allowed})


def _note(error: PersonalServerError) -> Note:
    """What was wrong with the form."""
    return Note(error.status, error.code, error.message)
