"""A small export: a table, with something broken in it."""

from __future__ import annotations

from sources.tests.specimens.files import Files

TABLE = b"""\
id,name,price,bought,kind,paid\r
1,"Flour, white",1.20,2024-01-05,food,true\r
2,Salt,0.80,2024-01-06,food,false\r
3,"two
lines",12,2024-01-07,tool,true\r
4,odd,1,2024-01-08,tool,true,too many\r
5,,,2024-01-09,,\r
"""

# One thing is odd in each: a row without names, a single column, a name twice, no value, words
# before the header, a quote that stays open, other charsets.
ODD: Files = {
    "no names.csv": b"2024-01-05,Coffee,3.10\n2024-01-06,Tea,2\n2024-01-06,Tea,2\n",
    "films.csv": b"film\nMetropolis\nStalker, the long one\n",
    "amounts.csv": b"Date,Amount,Amount\n2024-01-05,1,NaN\n2024-01-06,3, \n2024-01-07,5,6\n",
    "account.csv": b"Account:;DE00\n\nDay;Payee;Amount\n30.01.2024;B\xe4cker;-3,10\n",
    "quote.csv": b'id,what,how\n1,"never closed,bad\n2,"well ""said""",good\n3,so,good\n',
    "mac.csv": "name,city\rJosé,Málaga\rZoë,Genève\r".encode("mac_roman"),
    "wide.tsv": "name\tn\r\nZoë\t1\r\nIda\t2\r\n".encode("utf-16"),
}

FILES: Files = {"shopping.csv": TABLE}
