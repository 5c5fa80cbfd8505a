import pytest

from pdpp_sources.common.html_text import html_to_text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>Name <input name=q> and then</p><p>more</p>", "Name and then\n\nmore"),
        ("before <input name=q and what follows", "before and what follows"),
        ("before <input value='> and what follows<p>more", "before and what follows\nmore"),
        ('before <input value="a> and <b>what</b> follows', "before and what follows"),
        ("before <!-- a remark <p>and what follows", "before a remark\nand what follows"),
        ("before <title>and what follows", "before and what follows"),
        ('<input type=submit value="Say yes"> or no', "Say yes or no"),
        ("a <b>b</b> <script>c</script> d", "a b d"),
        ('a <iframe src="x"><script src="y"> c</script></iframe> d', "a d"),
        ("a <noframes>your program shows no frames</noframes> d", "a d"),
        ("before <iframe src=x>and what follows", "before and what follows"),
    ],
)
def test_nothing_after_a_broken_or_empty_element_is_lost(html: str, text: str) -> None:
    assert html_to_text(html) == text
