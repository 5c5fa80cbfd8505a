"""A small export: a table, with something broken in it."""

from __future__ import annotations

from tests.sources.specimens.files import Files

TABLE = b"""\
id,name,price,bought,kind,paid\r
1,"Flour, white",1.20,2024-01-05,food,true\r
2,Salt,0.80,2024-01-06,food,false\r
3,"two
lines",12,2024-01-07,tool,true\r
4,odd,1,2024-01-08,tool,true,too many\r
5,,,2024-01-09,,\r
"""

FILES: Files = {"shopping.csv": TABLE}
