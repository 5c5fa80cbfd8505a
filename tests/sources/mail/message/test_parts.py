from personal_server.sources.mail.message import Body, MailText, body_of


def body(*lines: bytes) -> Body:
    text = MailText(b"\n".join(lines))
    return body_of(text, text.message)


def test_text_that_is_utf_8_under_a_western_name_is_utf_8() -> None:
    said = body(b"Content-Type: text/plain; charset=iso-8859-1", b"", "£31, Michael’s".encode())
    assert said.text == "£31, Michael’s"


def test_text_of_a_western_charset_stays_so() -> None:
    said = body(b"Content-Type: text/plain; charset=iso-8859-1", b"", "£31, café".encode("cp1252"))
    assert said.text == "£31, café"


def test_the_name_of_a_file_may_be_raw_bytes() -> None:
    name = 'Content-Disposition: attachment; filename="ФНС 558.zip"'.encode()
    (attached,) = body(b"Content-Type: application/zip", name, b"", b"x").attachments
    assert attached.filename == "ФНС 558.zip"


def test_parts_are_found_behind_another_boundary_than_was_announced() -> None:
    head = b'Content-Type: multipart/alternative; boundary="one"'
    said = body(head, b"", b"--two", b"Content-Type: text/html", b"", b"<p>Hello</p>", b"--two--")
    assert said.text == "Hello"
    assert said.attachments == []


def test_a_multipart_without_parts_is_no_attachment() -> None:
    said = body(b'Content-Type: multipart/alternative; boundary="one"', b"", b"")
    assert (said.text, said.attachments) == ("", [])
