"""`make docs`: write generated pages anew, the types that the adapter serves, and catalogues."""

from pages.catalogues import renew
from pages.generated import DOCS, PAGES
from pages.typescript import DECLARATIONS, declarations

for name, page in PAGES.items():
    (DOCS / name).write_text(page(), encoding="utf-8")
DECLARATIONS.write_text(declarations(), encoding="utf-8")
renew()
