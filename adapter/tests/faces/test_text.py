from pdpp_mcp_server.faces import text


def test_values_that_could_be_misread_are_json_strings() -> None:
    assert text.fact("label", "Work mail") == 'label="Work mail"'
    assert text.fact("label", "Chase") == "label=Chase"
    assert text.fact("label", 'a"b') == 'label="a\\"b"'
    assert text.fact("next_cursor", "eyJr") == 'next_cursor="eyJr"'
    assert text.fact("has_more", False) == "has_more=false"


def test_an_unusual_first_id_is_named_by_its_place() -> None:
    head = text.head_line("search", None, ["hits=1"], "cin_a/messages:with space")
    assert head == "search: hits=1; first_id=[1]"
    assert text.head_line("search", None, ["hits=1"], "x" * 201).endswith("first_id=[1]")
    assert text.head_line("search", None, ["hits=1"], "cin_a/m:1").endswith("first_id=cin_a/m:1")


def test_a_nonce_is_drawn_again_when_the_text_holds_it() -> None:
    drawn = iter(["aaaaaaaaaaaa", "bbbbbbbbbbbb"])
    assert text.unused_nonce(lambda: next(drawn), "END aaaaaaaaaaaa") == "bbbbbbbbbbbb"


def test_recall_is_told_only_when_the_server_says_it() -> None:
    partial = {"meta": {"recall": {"complete": False, "ranking_scope": "candidate_window"}}}
    assert text.recall_lines(partial) == ["recall: candidate_window, not all matches were ranked"]
    assert text.recall_lines({"meta": {"recall": {"complete": True}}, "has_more": False}) == []
    assert text.recall_lines({"has_more": False}) == []


def test_freshness_and_unavailable_sources_are_lines() -> None:
    body = {"meta": {"freshness": {"status": "current", "captured_at": "2026-07-01T08:00:05Z"}}}
    assert text.freshness_lines(body) == ["fresh: current 2026-07-01T08:00:05Z"]
    gone = {"connection_id": "cin_z", "connector_key": "gmail", "reason": "connection_revoked"}
    lines = text.unavailable_lines([{**gone, "next_step": "choose_another"}])
    assert lines == ["unavailable: cin_z | gmail | connection_revoked | choose another"]


def test_a_warning_says_which_stream_of_which_connection_it_is_about() -> None:
    rows = [
        {"code": "source_skipped", "message": "No.", "connection_id": "cin_z", "detail": detail}
        for detail in ({"stream": "messages", "reason": "unknown_field"}, {})
    ]
    assert text.warning_lines([*rows, {"code": "page_shortened", "message": "Yes."}]) == [
        "warning: source_skipped No. (stream=messages; connection_id=cin_z; reason=unknown_field)",
        "warning: source_skipped No. (connection_id=cin_z)",
        "warning: page_shortened Yes.",
    ]
