"""A small export: a bank's and a broker's statement, with something broken in it."""

from __future__ import annotations

from sources.tests.specimens.files import Files

BANK = b"""\
OFXHEADER:100
DATA:OFXSGML
VERSION:102
ENCODING:USASCII
CHARSET:1252

<OFX><SIGNONMSGSRSV1><SONRS><STATUS><CODE>0<SEVERITY>INFO</STATUS>
<FI><ORG>Bank of Nowhere<FID>1</FI></SONRS></SIGNONMSGSRSV1>
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


BROKER = b"""\
OFXHEADER:100

<OFX><INVSTMTMSGSRSV1><INVSTMTTRNRS><INVSTMTRS><CURDEF>USD
<INVACCTFROM><BROKERID>broker.example<ACCTID>998877</INVACCTFROM>
<INVTRANLIST><BUYSTOCK><INVBUY><INVTRAN><FITID>1<DTTRADE>20240110<MEMO>bought</INVTRAN>
<SECID><UNIQUEID>037833100<UNIQUEIDTYPE>CUSIP</SECID><UNITS>2<UNITPRICE>10.50
<TOTAL>-21.00</INVBUY><BUYTYPE>BUY</BUYSTOCK></INVTRANLIST>
<INVPOSLIST><POSSTOCK><INVPOS><SECID><UNIQUEID>037833100<UNIQUEIDTYPE>CUSIP</SECID>
<UNITS>2<UNITPRICE>11<MKTVAL>22.00<DTPRICEASOF>20240131</INVPOS></POSSTOCK></INVPOSLIST>
</INVSTMTRS></INVSTMTTRNRS></INVSTMTMSGSRSV1>
<SECLISTMSGSRSV1><SECLIST><STOCKINFO><SECINFO><SECID><UNIQUEID>037833100<UNIQUEIDTYPE>CUSIP
</SECID><SECNAME>Fruit Co<TICKER>FRT</SECINFO></STOCKINFO></SECLIST></SECLISTMSGSRSV1></OFX>
"""

# Each layout with something booked, something that is not, and something that is no payment.
LAYOUTS: Files = {
    "PayPal.csv": b"""\
"Date","Time","Time Zone","Name","Type","Status","Currency","Gross","Fee","Net",\
"From Email Address","To Email Address","Transaction ID","Item Title","Balance"
"6/4/2024","10:46:49","PDT","Jane Doe","Payment","Completed","USD","-20.00","0.00","-20.00",\
"me@x.example","jane@x.example","XY1","A book","80.00"
"6/14/2024","11:00:00","PDT","Shop","Sale","Completed","USD","1,120.00","-33.00","1,087.00",\
"s@x.example","me@x.example","XY2","","1,167.00"
"6/15/2024","11:00:00","PDT","Shop","Sale","Pending","USD","5.00","0.00","5.00","","","XY3","",""
"6/16/2024","11:00:00","PDT","A","Shopping Cart Item","Completed","USD","1","0","1","","","XY4",\
"",""
""",
    "Venmo.csv": b"""\
Account Statement - (@me),,,,,,,,,,,,
,ID,Datetime,Type,Status,Note,From,To,Amount (total),Amount (fee),Funding Source,Destination,\
Beginning Balance
,,,,,,,,,,,,$0.00
,1,2024-01-01T13:00:00,Charge,Complete,dinner,Me,Friend A,+ $73.01,,,Venmo balance,
,2,2024-01-03T20:00:00,Payment,Complete,rent,Me,Friend B,"- $1,012.01",,Visa *1,,
,3,2024-01-04T04:00:00,Charge,Complete,taxi,Friend C,Me,- $35.02,,Visa *1,,
,4,2024-01-05T04:00:00,Standard Transfer,Issued,,,,- $38.00,$0.25,,Bank *2,
,5,2024-01-06T04:00:00,Payment,Failed,no,Me,Friend B,- $9.00,,Visa *1,,
""",
    "Mint.csv": b"""\
"Date","Description","Original Description","Amount","Transaction Type","Category","Account Name",\
"Labels","Notes"
"8/10/2016","Starbucks","STARBUCKS STORE 1","2.45","debit","Coffee Shops","My Card","",""
"11/27/2013","Transfer","CR CARD PAYMENT","66.88","credit","Credit Card Payment","My Card","",""
""",
    "Monarch.csv": b"""\
Date,Merchant,Category,Account,Original Statement,Notes,Amount,Tags
2024-05-02,Grocer,Groceries,Checking,GROCER 12,,-41.20,food
2024-05-03,Employer,Paychecks,Checking,PAYROLL,May,2000.00,
""",
    "YNAB.csv": b"""\
\xef\xbb\xbf"Account","Flag","Date","Payee","Category Group/Category","Category Group","Category",\
"Memo","Outflow","Inflow","Cleared"
"Cash","","31/01/2024","Baker","Food: Bread","Food","Bread","rolls",\xe2\x82\xac3.10,\
\xe2\x82\xac0.00,"Cleared"
"Cash","","01/02/2024","Wages","Inflow: Ready","Inflow","Ready","",\xe2\x82\xac0.00,\
"\xe2\x82\xac2,500.00","Uncleared"
""",
    "Schwab.csv": b"""\
Transactions  for Checking account EAC as of 12/23/2020 16:00:10 ET
"Date","Type","Check #","Description","Withdrawal (-)","Deposit (+)","RunningBalance"
"Pending Transactions are not reflected within this sort criterion."
"Posted Transactions"
"11/13/2020","ACH","","JPMorgan Chase","","$10,500.00","$10,550.01"
"10/27/2020","CHECK","101","Rent","$1,100.10","","$50.01"
""",
    "Brokerage.csv": b"""\
"Transactions  for account Brokerage XXXX-1234 as of 11/15/2020 18:00:21 ET"
"Date","Action","Symbol","Description","Quantity","Price","Fees & Comm","Amount",
"11/05/2020","Sell","FB","FACEBOOK INC CLASS A","100","$261.50","$6.06","$26143.94",
"09/16/2020 as of 09/15/2020","Bank Interest","","BANK INT","","","","$0.05",
"11/01/2020","Stock Plan Activity","FB","FACEBOOK INC CLASS A","300","","","",
"Transactions Total","","","","","","","$26143.99",
""",
    "N26.csv": b"""\
"Booking Date","Value Date","Partner Name","Partner Iban",Type,"Payment Reference","Account Name",\
"Amount (EUR)","Original Amount","Original Currency","Exchange Rate"
2024-01-05,2024-01-04,Baker,,Presentment,,Main,-3.1,-3.35,USD,0.925
2024-01-31,2024-01-31,Employer,DE0012345678,"Credit Transfer",January,Main,2500.0,,,
""",
    "N26 of before.csv": b"""\
"Date","Payee","Account number","Transaction type","Payment reference","Amount (EUR)",\
"Amount (Foreign Currency)","Type Foreign Currency","Exchange Rate"
"2019-01-05","Baker","","MasterCard Payment","","-3.1","-3.1","EUR","1.0"
""",
    "Revolut.csv": b"""\
Type,Product,Started Date,Completed Date,Description,Amount,Fee,Currency,State,Balance
CARD_PAYMENT,Current,2024-01-04 10:11:12,2024-01-05 08:00:00,Coffee,-3.10,0.00,EUR,COMPLETED,96.90
CARD_PAYMENT,Current,2024-01-04 10:12:12,2024-01-05 08:00:00,Coffee,-3.10,0.00,EUR,COMPLETED,93.80
TRANSFER,Current,2024-01-06 10:11:12,2024-01-06 10:11:13,To Ada,-50.00,0.80,GBP,COMPLETED,100.00
CARD_PAYMENT,Current,2024-01-07 10:11:12,,Hotel,-200.00,0.00,EUR,PENDING,
""",
    "Wise.csv": b"""\
"TransferWise ID",Date,Amount,Currency,Description,"Payment Reference","Running Balance",\
"Exchange Rate","Payer Name","Payee Name","Payee Account Number",Merchant,"Total fees"
TRANSFER-1,05-01-2024,-101.50,EUR,"Sent money to Ada",rent,898.50,,,Ada,GB0012,,1.50
CARD-2,06-01-2024,-12.00,EUR,"Card transaction",,886.50,,,,,Bookshop,0.00
""",
}

# A batch of two, a payment in another currency, one that came back, one that is not booked yet.
CAMT = b"""\
<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt>
<GrpHdr><MsgId>1</MsgId><CreDtTm>2024-02-01T06:00:00+01:00</CreDtTm></GrpHdr>
<Stmt><Id>2024-1</Id><Acct><Id><IBAN>DE89370400440532013000</IBAN></Id><Ccy>EUR</Ccy>
<Ownr><Nm>Me Myself</Nm></Ownr><Svcr><FinInstnId><BIC>COBADEFF</BIC><Nm>Bank of Nowhere</Nm>
</FinInstnId></Svcr></Acct>
<Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">100.00</Amt>
<CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2024-01-02</Dt></Dt></Bal>
<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">33.10</Amt>
<CdtDbtInd>DBIT</CdtDbtInd><Dt><Dt>2024-01-31</Dt></Dt></Bal>
<Ntry><Amt Ccy="EUR">150.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts>
<BookgDt><Dt>2024-01-03</Dt></BookgDt><ValDt><Dt>2024-01-02</Dt></ValDt>
<AcctSvcrRef>2024010300001</AcctSvcrRef><BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>ICDT</Cd>
<SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn></BkTxCd>
<NtryDtls><Btch><NbOfTxs>2</NbOfTxs></Btch>
<TxDtls><Refs><EndToEndId>RENT-1</EndToEndId></Refs><AmtDtls><TxAmt><Amt Ccy="EUR">120.00</Amt>
</TxAmt></AmtDtls><RltdPties><Dbtr><Nm>Me Myself</Nm></Dbtr><DbtrAcct><Id>
<IBAN>DE89370400440532013000</IBAN></Id></DbtrAcct><Cdtr><Nm>J\xc3\xbcrgen &amp; Sohn</Nm></Cdtr>
<CdtrAcct><Id><IBAN>DE02120300000000202051</IBAN></Id></CdtrAcct></RltdPties>
<RmtInf><Ustrd>Rent</Ustrd><Ustrd>January</Ustrd></RmtInf></TxDtls>
<TxDtls><Refs><EndToEndId>NOTPROVIDED</EndToEndId></Refs><AmtDtls><TxAmt><Amt Ccy="EUR">30.00</Amt>
</TxAmt></AmtDtls><RltdPties><Cdtr><Nm>Club</Nm></Cdtr></RltdPties></TxDtls></NtryDtls></Ntry>
<Ntry><Amt Ccy="EUR">18.10</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts>
<BookgDt><DtTm>2024-01-05T23:30:00+01:00</DtTm></BookgDt><BkTxCd><Domn><Cd>PMNT</Cd><Fmly>
<Cd>CCRD</Cd><SubFmlyCd>POSD</SubFmlyCd></Fmly></Domn></BkTxCd>
<NtryDtls><TxDtls><AmtDtls><InstdAmt><Amt Ccy="USD">20.00</Amt></InstdAmt><TxAmt>
<Amt Ccy="EUR">18.10</Amt><CcyXchg><SrcCcy>USD</SrcCcy><TrgtCcy>EUR</TrgtCcy>
<UnitCcy>USD</UnitCcy><XchgRate>0.905</XchgRate></CcyXchg></TxAmt></AmtDtls></TxDtls></NtryDtls>
<AddtlNtryInf>BOOKSHOP NEW YORK</AddtlNtryInf></Ntry>
<Ntry><Amt Ccy="EUR">35.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><RvslInd>true</RvslInd><Sts>BOOK</Sts>
<BookgDt><Dt>2024-01-08</Dt></BookgDt><NtryDtls><TxDtls><RltdPties><Dbtr><Nm>Me Myself</Nm></Dbtr>
<DbtrAcct><Id><IBAN>DE89370400440532013000</IBAN></Id></DbtrAcct><Cdtr><Nm>Phone Ltd</Nm></Cdtr>
</RltdPties><RmtInf><Ustrd>returned</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>
<Ntry><Amt Ccy="EUR">9.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>PDNG</Sts></Ntry>
<Ntry><Amt Ccy="EUR">nothing</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts></Ntry>
</Stmt></BkToCstmrStmt></Document>
"""

# Germany's numbered parts, the slashed words of the Netherlands, and a credit that was taken back.
MT940 = b"""\
:20:STARTUMS\r
:25:37040044/0532013001\r
:28C:1/1\r
:60F:C231229EUR100,00\r
:61:2401021229D20,50N005NONREF//2024A\r
:86:105?00SEPA-Lastschrift?20EREF+E-77?21MREF+M1?22SVWZ+Strom Dezember 202\r
3 un?23d Januar?30GENODEF1?31DE02120300000000202051?32Stadtwerke Musters\r
tadt und ?33Umgebung\r
:61:240103RCR5,00NRTINONREF\r
:86:/TRTP/SEPA/IBAN/NL02ABNA0123456789/NAME/J. Jansen/REMI/Back again/E\r
REF/NOTPROVIDED\r
:61:24010\r
:62F:C240103EUR74,50\r
-\r
"""

# A payment over two categories, an opening balance, a payment of which the end is missing.
QIF = b"""\
!Account
NWallet
TCash
^
!Type:Cash
D1/15'24
T1,000.00
POpening Balance
L[Wallet]
^
D1/16'24
T-48.00
PMarket
N101
SFood
$-31.00
SHome
Ebrush
$-17.00
^
D1/17'24
PNobody
"""

STATEMENTS: Files = {"statement.xml": CAMT, "umsaetze.sta": MT940, "wallet.qif": QIF}
FILES: Files = {
    "statement.ofx": BANK,
    "broker.qfx": BROKER,
    "Revolut.csv": LAYOUTS["Revolut.csv"],
    **STATEMENTS,
}
