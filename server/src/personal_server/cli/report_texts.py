"""The report of an import with the texts in it, for pages that tell it in a language."""

from __future__ import annotations

from typing import Any, cast

from pdpp_kernel.texts import CatalogueText, render_text


def with_texts(report: Any) -> Any:
    """A report with what each sentence in it was made of, for those who tell it in a language."""
    if isinstance(report, list):
        return [with_texts(each) for each in cast("list[Any]", report)]
    if not isinstance(report, dict):
        return report
    members = cast("dict[str, Any]", report)
    made = {n: render_text(v) for n, v in members.items() if isinstance(v, CatalogueText)}
    rendered = {name: with_texts(value) for name, value in members.items()}
    return rendered | ({"texts": made} if made else {})
