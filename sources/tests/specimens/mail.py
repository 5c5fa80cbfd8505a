"""A small export: Gmail's mailbox, with something broken in it."""

from __future__ import annotations

from sources.tests.specimens.files import Files

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

FILES: Files = {"Takeout/Mail/All mail.mbox": MAIL}
