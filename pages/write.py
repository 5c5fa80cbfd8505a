"""`make docs`: write anew what is generated: tools and their types, pages, catalogues."""

from pages.catalogues import renew
from pages.generated import DOCS, PAGES
from pages.tool_schemas import TOOLS, tool_document
from pages.typescript import DECLARATIONS, declarations

TOOLS.write_text(tool_document(), encoding="utf-8")
for name, page in PAGES.items():
    (DOCS / name).write_text(page(), encoding="utf-8")
DECLARATIONS.write_text(declarations(), encoding="utf-8")
renew()
