"""The call that was plainly meant where nothing matches, in the caller's own words.

Source: docs/contract/mcp-adapter.md 10.2.
"""

import re

from pdpp_kernel.operators import Operator
from pdpp_mcp_server.arguments import Arguments, without
from pdpp_mcp_server.errors import NextCall
from pdpp_mcp_server.faces.mail_operators import MailFiles, said_as_arguments
from pdpp_mcp_server.faces.near_calls import CONTAINS, LONGEST_PART
from pdpp_mcp_server.read_refusals import span_of
from pdpp_mcp_server.rs_client.answers import meta_of
from pdpp_mcp_server.rs_client.json_values import Json, as_list, as_object, is_object

PLAIN_WORDS = re.compile(r"[^\W\d_][^\d_@:/\\]{2,}")
NOT_WORD = re.compile(r'(?<!\S)NOT\s+(?=[\w"])')
SEARCH_SIGNS = re.compile(r'(?<!\S)\w+:(?=\S)|"')
RELEVANCE = "relevance"
AMOUNT = "amount"
A_NUMBER = re.compile(r"-?(?!0*\.?0*$)\d{1,12}(?:\.\d{1,6})?")
_TURNED = {
    Operator.GT.value: Operator.LT.value,
    Operator.GTE.value: Operator.LTE.value,
    Operator.LT.value: Operator.GT.value,
    Operator.LTE.value: Operator.GTE.value,
}
WHERE = ("streams", "connection_id")
NARROWING = (*WHERE, "filter", "since", "until")
SEARCHED = ("query", "connection_id", "limit", "filter", "since", "until")


def meant_calls(
    tool: str, arguments: Arguments, body: Json, files: MailFiles | None = None
) -> list[NextCall]:
    """The call that was plainly meant where nothing matches: in the caller's own words.

    `NOT word` is `-word` and `before:2024-01-01` an `until`, also where something matches; a day as
    both bounds is that whole day; words of a strict search may stand anywhere, in all streams.
    Of a filter: a word may be a part of a value, words that are part of none may stand in another
    form, an empty text means without a value, an amount may have the other sign.  Where no record
    holds the words, and the call left nothing out, there is none.

    Shapes: files is where this access counts what is attached to mails, if it does.
    """
    kept = without(arguments, "cursor")
    if tool == "search":
        return _meant_searches(kept, body, files)
    asked = str(kept.get("query", ""))
    if (words := _with_signs(asked, body)) != asked:
        return [NextCall(tool, {**kept, "query": words}, "leaves that word out")]
    if not _is_empty(body):
        return []
    day = _whole_day(kept)
    if day is not None:
        return [NextCall(tool, day, "all of that day")]
    for name, sought in as_object(arguments.get("filter")).items():
        if (wider := _wider_filter(tool, kept, name, sought)) is not None:
            return [wider]
    return []


# In, of a filter                     Out
# {"subject": ""}                      {"subject": {"exists": false}}
# {"amount": 12.5}                     {"amount": -12.5}
# {"amount": {"gt": 100}}              {"amount": {"lt": -100}}
# {"title": "rent"}                    {"title": {"contains": "rent"}}
# {"title": {"contains": "rent"}}      the query "rent" without this condition: of `aggregate` the
#                                      call itself, else a search in that stream
def _wider_filter(tool: str, asked: Arguments, name: str, sought: object) -> NextCall | None:
    """The call with one condition loosened, if that is of a kind that can be."""
    conditions = as_object(asked["filter"])
    if sought == "":
        valueless = {**conditions, name: {Operator.EXISTS.value: False}}
        return NextCall(tool, {**asked, "filter": valueless}, "without a value")
    if AMOUNT in name and (turned := _of_other_sign(sought)) is not None:
        other = {**conditions, name: turned}
        return NextCall(tool, {**asked, "filter": other}, "what was spent is below zero")
    if _is_words(sought):
        wider = {**conditions, name: {CONTAINS: sought}}
        return NextCall(tool, {**asked, "filter": wider}, "where it is a part of the value")
    part = as_object(sought).get(CONTAINS)
    if not _is_words(part) or "query" in asked or "stream" not in asked:
        return None
    others = without(conditions, name)
    kept = {**without(asked, "filter"), **({"filter": others} if others else {}), "query": part}
    if tool == "aggregate":
        return NextCall(tool, kept, "the words in any form")
    stream = {"streams": [asked["stream"]]}
    searched = {member: kept[member] for member in SEARCHED if member in kept}
    return NextCall("search", {**searched, **stream}, "the words in any form")


def _of_other_sign(sought: object) -> object | None:
    """An amount, or amounts from one on, on the other side of zero."""
    if not is_object(sought):
        return _opposite(sought)
    turned = {_TURNED.get(operator, ""): _opposite(bound) for operator, bound in sought.items()}
    is_above = not turned.keys().isdisjoint({Operator.LT.value, Operator.LTE.value})
    all_known = all(name and bound is not None and bound < 0 for name, bound in turned.items())
    return turned if is_above and all_known else None


def _opposite(sought: object) -> float | None:
    if isinstance(sought, str) and A_NUMBER.fullmatch(sought):
        return -float(sought) if "." in sought else -int(sought)
    if isinstance(sought, (int, float)) and not isinstance(sought, bool) and sought:
        return -sought
    return None


def _is_words(sought: object) -> bool:
    return isinstance(sought, str) and bool(PLAIN_WORDS.fullmatch(sought[:LONGEST_PART]))


def _meant_searches(kept: Arguments, body: Json, files: MailFiles | None) -> list[NextCall]:
    asked = str(kept.get("query", kept.get("q", "")))
    words = _with_signs(asked, body)
    kept = {**without(kept, "q"), "query": words}
    if (arguments := said_as_arguments(kept, files)) is not None:
        return [arguments]
    if words != asked:
        return [NextCall("search", kept, "leaves that word out")]
    if not _is_empty(body):
        return []
    day = _whole_day(kept)
    if day is not None:
        return [NextCall("search", day, "all of that day")]
    if kept.get("sort", RELEVANCE) != RELEVANCE and not _is_absent(body):
        return [NextCall("search", without(kept, "sort"), "what holds some of the words")]
    narrowing = WHERE if _is_absent(body) else NARROWING
    wider = _wider_search(kept, " ".join(SEARCH_SIGNS.sub(" ", asked).split()), narrowing)
    return [wider] if wider else []


def _with_signs(asked: str, body: Json) -> str:
    """The words with `-word` for `NOT word`, where the server passed over `NOT`."""
    is_ignored = "NOT" in as_list(meta_of(body).get("ignored_words"))
    return NOT_WORD.sub("-", asked) if is_ignored else asked


def _is_empty(body: Json) -> bool:
    return as_object(meta_of(body).get("empty")).get("reason") == "nothing_matches"


def _is_absent(body: Json) -> bool:
    """Whether no record holds any of the words, whatever the conditions."""
    relaxed = as_object(meta_of(body).get("relaxed"))
    return relaxed.get("words") == len(as_list(relaxed.get("absent")))


def _whole_day(asked: Arguments) -> Arguments | None:
    """The call with the day, month or year that is both its bounds as the span that it is."""
    span = span_of(str(asked.get("until")))
    if span is None or asked.get("since") != asked.get("until"):
        return None
    return {**asked, "until": span[1].isoformat()}


def _wider_search(asked: Arguments, words: str, narrowing: tuple[str, ...]) -> NextCall | None:
    """What the call left out: each way on is wider than the one before."""
    if any(map(str.isalnum, words)):
        loose = {**without(asked, "exact"), "query": words}
        if loose != asked:
            return NextCall("search", loose, "these words anywhere")
    everywhere = without(asked, *NARROWING)
    if not asked.keys() & {*narrowing}:
        return None
    return NextCall("search", everywhere, "wherever you may search")
