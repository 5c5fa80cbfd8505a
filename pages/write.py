"""`make docs`: write the generated pages anew, and the types that the adapter serves."""

from pages.generated import DOCS, PAGES
from pages.typescript import DECLARATIONS, declarations

for name, page in PAGES.items():
    (DOCS / name).write_text(page(), encoding="utf-8")
DECLARATIONS.write_text(declarations(), encoding="utf-8")
