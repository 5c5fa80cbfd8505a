import logging
from collections.abc import Generator

import pytest

from personal_server.web.logs import (
    CHATTY,
    REPEATS,
    WINDOW_SECONDS,
    RepeatLimit,
    configure_logging,
    mask_secrets,
)

SECRETS = [f"pdpp_{kind}_{'x' * 43}" for kind in ("at", "rt", "ac", "dc", "ol", "is")] + [
    "urn:ietf:params:oauth:request_uri:" + "y" * 43
]


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Generator[None]:
    """What a server configures for its whole process ends with the test."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    quiet = {name: logging.getLogger(name).level for name in CHATTY}
    yield
    root.setLevel(level)
    root.handlers[:] = handlers
    for name, was in quiet.items():
        logging.getLogger(name).setLevel(was)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_masked_wherever_it_stands(secret: str) -> None:
    assert mask_secrets(f"before {secret} after") == "before [secret] after"


def test_logs_go_to_standard_error_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    logging.getLogger("some.library").warning("called with %s", SECRETS[0])
    logging.getLogger("personal_server.own").info("token %s seen", SECRETS[1])
    out, err = capsys.readouterr()
    assert out == ""
    assert "called with [secret]" in err
    assert "token [secret] seen" in err
    assert "xxxx" not in err


def test_the_http_clients_lines_with_whole_urls_are_silenced(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging("debug")
    logging.getLogger("httpx2").info("GET http://127.0.0.1/v1/search?q=marker")
    assert "marker" not in capsys.readouterr().err


def test_an_exception_is_one_line_without_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    try:
        raise ValueError("my secret")
    except ValueError:
        logging.getLogger("some.library").exception("it\nfailed")
    (line,) = capsys.readouterr().err.splitlines()
    assert "ValueError" in line
    assert "test_logs.py" in line
    assert "secret" not in line


def test_what_repeats_is_said_a_few_times_a_minute_and_then_counted() -> None:
    now = 0.0
    limit = RepeatLimit(lambda: now)
    record = logging.LogRecord("x", logging.ERROR, "here.py", 7, "again", None, None)
    other = logging.LogRecord("x", logging.ERROR, "here.py", 8, "other", None, None)
    assert sum(limit.filter(record) for _ in range(1_000)) == REPEATS
    assert limit.filter(other)
    now = WINDOW_SECONDS
    assert limit.filter(record)
    assert f"{1_000 - REPEATS} more" in record.getMessage()
