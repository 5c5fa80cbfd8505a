"""A small export: backups of an Android phone, with something broken in them."""

from __future__ import annotations

from sources.tests.specimens.files import Files

HEAD = "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>\n<!--File Created By the app-->\n"
_TEXTS = """<smses count="5" backup_set="8f" backup_date="1705328600000" type="full">
  <sms protocol="0" address="+1 555-123-4567" date="1705328400000" type="1" subject="null" \
body="Which &quot;oven&quot;? &#55357;&#56832;&#10;Stone &amp; warm" read="1" status="-1" \
readable_date="Jan 15, 2024" contact_name="Bo Adair" />
  <sms protocol="0" address="+15551234567" date="1705328450000" type="2" subject="null" \
body="The stone one." read="1" status="-1" contact_name="Bo Adair" />
  <sms protocol="0" address="Bakery" date="soon" type="1" body="Bread" contact_name="(Unknown)" />
  <mms date="1705328500000" msg_box="1" address="+15551234567~+15557654321" m_id="m1" sub="Loaf" \
contact_name="Bo Adair, Cy Cook">
    <parts>
      <part seq="-1" ct="application/smil" name="null" cl="smil.xml" text="&lt;smil/&gt;" />
      <part seq="0" ct="text/plain" name="null" cl="text.txt" text="Look at it" />
      <part seq="0" ct="image/jpeg" name="loaf.jpg" cl="null" text="null" data="/9j/4CBsb2Fm" />
      <part seq="0" ct="image/png" name="null" cl="crumb.png" text="null" />
    </parts>
    <addrs>
      <addr address="+15557654321" type="137" charset="106" />
      <addr address="+15551234567" type="151" charset="106" />
    </addrs>
  </mms>
</smses>
"""
_CALLED = """<calls count="2" backup_set="8f" type="full">
  <call number="+15551234567" duration="37" date="1705328700000" type="2" presentation="1" \
readable_date="Jan 15, 2024" contact_name="Bo Adair" />
  <call number="" duration="0" date="1705328800000" type="3" contact_name="(Unknown)" />
</calls>
"""
FILES: Files = {
    "sms-20240115.xml": (HEAD + _TEXTS).encode(),
    "calls-20240115.xml": (HEAD + _CALLED).encode(),
}
