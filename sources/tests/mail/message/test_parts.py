from pdpp_sources.mail.message import Body, MailText, body_of


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


def test_lines_that_flow_are_joined() -> None:
    said = body(
        b'Content-Type: text/plain; charset=utf-8; format="Flowed"',
        b"",
        b"Bread needs flour, ",
        b"water and time.",
        b"",
        b"> Rye or ",
        b"> wheat?",
        b">> Both, ",
        b"> I said",
        b" From the oven",
        b"-- ",
        b"Ada",
    )
    lines = ["Bread needs flour, water and time.", "", "> Rye or wheat?", ">> Both, ", "> I said"]
    assert said.text.split("\n") == [*lines, "From the oven", "-- ", "Ada"]


def test_a_flowed_text_may_say_that_its_blanks_are_not_its_own() -> None:
    head = b"Content-Type: text/plain; format=flowed; delsp=yes"
    assert body(head, b"", b"https://example.org/a ", b"b", b"end").text == (
        "https://example.org/ab\nend"
    )


def test_links_of_a_page_are_kept_beside_its_words() -> None:
    page = (
        b'<p>Your parcel: <a href="https://example.org/t?n=1">track\n it</a> '
        b'<a href="https://example.org/t?n=1">track it</a> <a href="#top">up</a>'
        b'<a href="HTTPS://example.org/x"><img alt="Logo"></a><a href="https://example.org">'
        b'https://example.org</a><a href="mailto:a@b">write</a></p>'
    )
    said = body(b"Content-Type: text/html", b"", page)
    assert said.text.startswith("Your parcel: track it")
    assert said.links == [
        "track it <https://example.org/t?n=1>",
        "Logo <HTTPS://example.org/x>",
        "https://example.org",
    ]


def test_the_links_of_a_page_are_kept_where_the_plain_text_speaks() -> None:
    said = body(
        b'Content-Type: multipart/alternative; boundary="a"',
        b"",
        b"--a\nContent-Type: text/plain\n\nPlain\n--a\nContent-Type: text/html\n",
        b'<a href="https://example.org/pay">Pay</a>\n--a--',
    )
    assert (said.text, said.links) == ("Plain", ["Pay <https://example.org/pay>"])


def test_the_page_speaks_where_the_plain_text_is_another() -> None:
    said = body(
        b'Content-Type: multipart/alternative; boundary="a"',
        b"",
        b"--a\nContent-Type: text/plain\n\nYour program cannot show this mail.",
        b"Open it in a browser, please.\n--a",
        b"Content-Type: text/html\n\n<p>See you at ten.</p><p>Bring the slides.</p>\n--a--",
    )
    assert said.text == "See you at ten.\n\nBring the slides."
