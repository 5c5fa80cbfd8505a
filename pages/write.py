"""`make docs`: write the generated pages anew."""

from pages.generated import DOCS, PAGES

for name, page in PAGES.items():
    (DOCS / name).write_text(page(), encoding="utf-8")
