"""Small exports of every kind, shaped as the platforms' own descriptions say.

They are written by us. Where real files that others made can be had, `test_registry` reads those.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

Files = dict[str, bytes]

MAIL = b"""\
From 1790512345678@xxx Mon Mar 14 06:30:00 +0000 2022
X-GM-THRID: 1790512345678
X-Gmail-Labels: =?UTF-8?Q?Inbox,Wichtig,"Reisen,_Italien",Ge=C3=B6ffnet?=
Delivered-To: ada@example.org
Message-ID: <a1@example.org>
Date: Mon, 14 Mar 2022 07:30:00 +0100
From: =?utf-8?q?J=C3=BCrgen?= <Juergen@Example.ORG>
To: Ada <ada@example.org>, "Byron, Ann" <ann@example.org>
Subject: =?utf-8?b?w4RwZmVsIHVu?= =?utf-8?b?ZCBCaXJuZW4=?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="m"

--m
Content-Type: multipart/alternative; boundary="a"

--a
Content-Type: text/html; charset=utf-8

<html><head><style>p{color:red}</style></head>
<body><p>Hello <b>Ada</b>,</p><p>see below.</p></body></html>
--a--
--m
Content-Type: application/pdf; name="../../etc/bill.pdf"
Content-Transfer-Encoding: base64
Content-Disposition: attachment; filename="../../etc/bill.pdf"

JVBERi0xLjQK
--m--

From - Tue Mar 15 08:00:00 2022
Message-ID: <a2@example.org>
In-Reply-To: <a1@example.org>
References: <a1@example.org>
Date: not a date at all
From: ada@example.org
To: undisclosed-recipients:;
Subject: caf\xe9 =?x-unheard-of?q?na=EFve?=
Content-Type: text/plain; charset=x-unheard-of

Na\xefve text, 8 bit.
>From the beginning.

"""

BANK = b"""\
OFXHEADER:100
DATA:OFXSGML
VERSION:102
ENCODING:USASCII
CHARSET:1252

<OFX><SIGNONMSGSRSV1><SONRS><FI><ORG>Bank of Nowhere<FID>1</FI></SONRS></SIGNONMSGSRSV1>
<BANKMSGSRSV1><STMTTRNRS><STMTRS><CURDEF>EUR
<BANKACCTFROM><BANKID>10020030<ACCTID>DE0012345678<ACCTTYPE>CHECKING</BANKACCTFROM>
<BANKTRANLIST><DTSTART>20240101<DTEND>20240131
<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20240105230000[-5:EST]<TRNAMT>-1.234,56
<FITID>7<NAME>B\xe4cker &amp; Co<MEMO></STMTTRN>
<STMTTRN><TRNTYPE>CREDIT<DTPOSTED>20240131<TRNAMT>2500.00<FITID>8<NAME>Wages<MEMO>January</STMTTRN>
<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20240131<TRNAMT>-3.10<FITID>9<NAME>Coffee<MEMO>one</STMTTRN>
<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20240131<TRNAMT>-3.10<FITID>9<NAME>Coffee<MEMO>two</STMTTRN>
</BANKTRANLIST><LEDGERBAL><BALAMT>1262.24<DTASOF>20240131</LEDGERBAL></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>
"""

SPECIMENS: dict[str, Files] = {
    "mail": {"Takeout/Mail/All mail.mbox": MAIL},
    "bank": {"statement.ofx": BANK},
}


def as_folder(files: Files, folder: Path) -> Path:
    """The files under a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def as_zip(files: Files, path: Path) -> Path:
    """The files in an archive, dated alike so that the archive is always the same bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (2024, 2, 1, 12, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path
