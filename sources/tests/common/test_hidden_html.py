"""Text that an HTML document hides from its readers is not its text."""

from __future__ import annotations

import pytest

from pdpp_sources.common.html_text import html_to_text, read_html

HIDDEN = {
    "display": '<div style="display:none">SECRET</div>',
    "display !important": '<div style="DISPLAY: None !important; color: red">SECRET</div>',
    "visibility": '<span style="visibility:hidden">SECRET</span>',
    "visibility of a parent with a colour": (
        '<div style="visibility:hidden"><b style="color:red">SECRET</b></div>'
    ),
    "no size of letters": '<span style="font-size:0">SECRET</span>',
    "a pixel of letters": '<span style="font-size:1px;line-height:1px">SECRET</span>',
    "relative to no size": '<div style="font-size:0"><b style="font-size:2em">SECRET</b></div>',
    "attribute": "<p hidden>SECRET</p>",
    "opacity": '<p style="opacity:0.0">SECRET</p>',
    "off the screen": '<div style="position:absolute;left:-9999px">SECRET</div>',
    "above the screen": '<div style="position: fixed; top: -100em">SECRET</div>',
    "indented away": '<p style="text-indent:-9999px">SECRET</p>',
    "margin": '<p style="margin-left:-5000px">SECRET</p>',
    "no height": '<div style="max-height:0;overflow:hidden">SECRET</div>',
    "no box": '<p style="width:0;height:0;overflow:hidden">SECRET</p>',
    "a pixel of box": '<p style="width:1px;height:1px;overflow:hidden">SECRET</p>',
    "closed details": "<details><summary>more</summary>SECRET <b>SECRET</b></details>",
    "closed dialog": "<dialog>SECRET</dialog>",
    "white on white": '<p style="color:#fff;background:#FFFFFF">SECRET</p>',
    "black on black": '<p style="color:black; background-color: rgb(0, 0, 0)">SECRET</p>',
    "transparent": '<p style="color:rgba(1,2,3,0)">SECRET</p>',
    "clip": '<p style="position:absolute;clip:rect(1px, 1px, 1px, 1px)">SECRET</p>',
    "clip-path": '<p style="clip-path: inset(100%)">SECRET</p>',
    "scale": '<p style="transform:scale(0)">SECRET</p>',
    "translate": '<p style="transform: translate(0, -9999px)">SECRET</p>',
    "for one program": '<p style="mso-hide:all">SECRET</p>',
    "sheet": '<style>.pre, #x { display:none !important }</style><p class="pre">SECRET</p>',
    "template": "<template>SECRET</template>",
}
SHOWN = {
    "a size again": '<td style="font-size:0"><div style="font-size:13px">WORDS</div></td>',
    "visible again": '<div style="visibility:hidden"><b style="visibility:visible">WORDS</b></div>',
    "coloured again": '<p style="color:#fff;background:#fff"><b style="color:#000">WORDS</b></p>',
    "white on black": '<p style="color:#fff;background:#000">WORDS</p>',
    "white on a picture": '<p style="color:#fff;background:#fff url(a.png)">WORDS</p>',
    "hidden on narrow screens": (
        "<style>@media (max-width:9px) { .a { display:none } }</style><p class=a>WORDS</p>"
    ),
    "a wide box": '<div style="overflow:hidden;max-width:100%;width:600px">WORDS</div>',
    "a high line": '<p style="height:1px">WORDS</p>',
    "half seen": '<p style="opacity:0.5">WORDS</p>',
    "moved a little": '<p style="margin-left:-10px;text-indent:-2em">WORDS</p>',
    "open details": "<details open><summary>more</summary>WORDS</details>",
    "no style": '<p style="">WORDS</p>',
    "broken style": '<p style="color:;;:;display">WORDS</p>',
    "another rule": "<style>.pre{display:none}</style><p class=post>WORDS</p>",
}


@pytest.mark.parametrize("way", HIDDEN)
def test_what_nobody_sees_is_left_out(way: str) -> None:
    text = html_to_text(f"<html><body><p>before</p>{HIDDEN[way]}<p>after</p></body></html>")
    assert "SECRET" not in text
    assert text.split()[0] == "before"
    assert text.split()[-1] == "after"


@pytest.mark.parametrize("way", SHOWN)
def test_what_is_seen_stays(way: str) -> None:
    assert "WORDS" in html_to_text(f"<html><body><p>before</p>{SHOWN[way]}</body></html>")


def test_a_hidden_link_leads_nowhere() -> None:
    hidden = '<p style="font-size:0"><a href="https://a.example">x</a></p>'
    page = read_html(f'<body>{hidden}<a href="https://b.example">y</a></body>')
    assert page.links == ["y <https://b.example>"]
