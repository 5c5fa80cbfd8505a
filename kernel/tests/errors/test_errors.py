"""The closed set of error codes, as docs/contract/resource-server.md lists it, and the classes:
both ways.
"""

from pdpp_kernel import errors
from pdpp_kernel.errors import TYPE_OF_STATUS, PersonalServerError
from pdpp_kernel.oauth_errors import DecisionRefusal, OAuthRefusal
from pdpp_kernel.texts import message

CONTRACT = """
400 invalid_request unsupported_version invalid_cursor unknown_field invalid_sort invalid_filter
400 invalid_expand invalid_window invalid_field_path unsupported_search_mode
400 invalid_declaration invalid_callback confirmation_required
401 authentication_error invalid_token invalid_dpop_proof use_dpop_nonce
403 grant_revoked grant_expired grant_paused grant_invalid grant_stream_not_allowed
403 field_not_granted events_not_granted permission_error
404 not_found connection_not_found blob_not_found field_not_found query_not_found
405 method_not_allowed
415 unsupported_media_type
421 misdirected_request
409 ambiguous_connection ambiguous_schema_detail connection_not_writable connection_busy
409 invalid_state limit_reached verification_pending
409 declaration_conflict declaration_incompatible
410 cursor_expired
413 resource_limit
414 resource_limit
416 range_not_satisfiable
422 field_not_text damaged_record
429 rate_limit_exceeded quota_exceeded
500 internal_error
503 query_timeout storage_unavailable storage_read_only
"""
# Codes of the owner's pages.
ELSEWHERE = """
400 sign_in_link_invalid
401 owner_session_required sign_in_failed
403 csrf_failed
"""
TYPES = """
invalid_request_error 400 405 415 421
authentication_error 401
permission_error 403
not_found_error 404
conflict_error 409
gone_error 410
request_entity_too_large_error 413 414 416
unprocessable_error 422
rate_limit_error 429
api_error 500 503
"""


def listed(table: str) -> set[tuple[int, str]]:
    lines = [line.split() for line in table.splitlines() if line]
    return {(int(status), code) for status, *codes in lines for code in codes}


def classes() -> list[type[PersonalServerError]]:
    return [
        member
        for member in vars(errors).values()
        if isinstance(member, type)
        and issubclass(member, PersonalServerError)
        and member is not PersonalServerError
        and not issubclass(member, OAuthRefusal | DecisionRefusal)
    ]


def test_the_classes_and_the_contract_list_the_same_codes() -> None:
    assert {(each.status, each.code) for each in classes()} == listed(CONTRACT + ELSEWHERE)


def test_each_status_has_the_type_of_the_contract() -> None:
    rows = [line.split() for line in TYPES.strip().splitlines()]
    assert {int(s): kind for kind, *statuses in rows for s in statuses} == dict(TYPE_OF_STATUS)


def test_no_two_classes_mean_the_same() -> None:
    pairs = [(each.status, each.code) for each in classes()]
    assert len(pairs) == len(set(pairs))


def test_what_is_logged_of_an_error_is_its_message() -> None:
    assert str(errors.InvalidRequest("Say when.")) == "Say when."
    told = message("At most %(most)s.", most=3)
    refused = errors.InvalidRequest(told, param="limit", allowed_values=[1], recovery=None)
    assert (str(refused), refused.message, refused.text) == ("At most 3.", "At most 3.", told)
    assert (refused.param, refused.members) == ("limit", {"allowed_values": [1]})
    assert refused.type == "invalid_request_error"


def test_a_nonce_is_no_part_of_what_is_logged() -> None:
    refused = errors.UseDpopNonce("Use the nonce.", "secret")
    assert (str(refused), refused.nonce, refused.param) == ("Use the nonce.", "secret", None)
    assert refused.members == {}
