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

FILES: Files = {"statement.ofx": BANK, "broker.qfx": BROKER, "Revolut.csv": LAYOUTS["Revolut.csv"]}
