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
    "faint": '<p style="opacity:1%">SECRET</p>',
    "filter": '<p style="filter: blur(0) opacity(0)">SECRET</p>',
    "spelled in escapes": '<p style="dis\\70 lay:\\6eone">SECRET</p>',
    "with what no browser takes": '<p style="display:none;display:bogus">SECRET</p>',
    "no size in font": '<p style="font: bold 0/0 a">SECRET</p>',
    "no colour in four digits": '<p style="color:#fff0">SECRET</p>',
    "no colour in eight digits": '<p style="color:#12345600">SECRET</p>',
    "no colour in words": '<p style="color: rgb(0 0 0 / 0%)">SECRET</p>',
    "no colour of hue": '<p style="color:hsla(0,0%,0%,0)">SECRET</p>',
    "no fill": '<p style="color:#000;-webkit-text-fill-color:transparent">SECRET</p>',
    "scale of its own": '<p style="scale:0">SECRET</p>',
    "moved by itself": '<p style="translate:-9999px 0">SECRET</p>',
    "inset": '<p style="position:absolute;inset-inline-start:-9999px">SECRET</p>',
    "matrix": '<p style="transform:matrix(0, 0, 0, 0, 0, 0)">SECRET</p>',
    "on its edge": '<p style="transform:rotateY(90deg)">SECRET</p>',
    "popover": "<div popover>SECRET</div>",
    "choices": "<datalist><option>SECRET</option></datalist>",
    "in the place of a picture": "<canvas>SECRET</canvas>",
    "in the place of a page": "<iframe>SECRET</iframe><noframes>SECRET</noframes>",
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
    "an opaque colour": '<p style="color:rgb(255,0,0)">WORDS</p>',
    "black in words": '<p style="color: rgb(0 0 0)">WORDS</p>',
    "black with a full alpha": '<p style="color:rgba(0,0,0,1.0)">WORDS</p>',
    "green in three digits": '<p style="color:#0f0">WORDS</p>',
    "black in six digits": '<p style="color:#000000">WORDS</p>',
    "a font": '<p style="font: 400 10px/1.0 Arial">WORDS</p>',
    "no space of letters": '<p style="font:14px a;letter-spacing:0;margin:0">WORDS</p>',
    "a font again": '<td style="font-size:0"><b style="font:13px/1 Arial">WORDS</b></td>',
    "a size after none": '<p style="font:0/0 a;font-size:13px">WORDS</p>',
    "a display of two words": '<p style="display:none;display:inline-block">WORDS</p>',
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
