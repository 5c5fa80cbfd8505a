"""Small exports in CSV for the recipes that ship, as the headers of public files say.

Each has something in it that is broken or that is no record.
"""

from __future__ import annotations

from sources.tests.specimens.files import Files, as_json


def _csv(*lines: str) -> bytes:
    return ("\r\n".join(lines) + "\r\n").encode()


NETFLIX: Files = {
    "CONTENT_INTERACTION/ViewingActivity.csv": _csv(
        "Profile Name,Start Time,Duration,Attributes,Title,Supplemental Video Type,Device Type,"
        "Bookmark,Latest Bookmark,Country",
        'Ada,2023-06-01 18:30:00,01:23:45,,"Bread: Season 1: ""Ovens""",,TV,01:23:45,01:23:45,'
        "DE (Germany)",
        "Ada,2023-06-01 18:29:10,00:00:31,Autoplayed: user action: None;,Bread (Trailer),TRAILER,"
        "TV,00:00:31,Not latest view,DE (Germany)",
        "Ada,yesterday,00:10:00,,Rye,,TV,00:10:00,00:10:00,DE (Germany)",
    ),
    "NetflixViewingHistory.csv": _csv(
        "Title,Date", '"Bread: Season 1: ""Ovens""",6/1/23', "Rye,6/21/23", "Oats,soon"
    ),
    "CONTENT_INTERACTION/Ratings.csv": _csv(
        "Profile Name,Title Name,Rating Type,Star Value,Thumbs Value,Device Model,Event Utc Ts,"
        "Region View Date",
        "Ada,Bread,thumb,,2,TV,2023-06-02 10:00:00,2023-06-02",
        "Ada,Rye,star,4,,TV,2016-06-02 10:00:00,2016-06-02",
    ),
    "CONTENT_INTERACTION/SearchHistory.csv": _csv(
        "Profile Name,Country Iso Code,Device,Is Kids,Query Typed,Displayed Name,Action,Section,"
        "Utc Timestamp",
        "Ada,DE,TV,0,brea,Bread,play,Video,2023-06-01 18:20:00",
    ),
    "CONTENT_INTERACTION/MyList.csv": _csv(
        "Profile Name,Title Name,Country,Utc Title Add Date", "Ada,Rye,DE (Germany),2023-06-03"
    ),
}

LETTERBOXD: Files = {
    "diary.csv": _csv(
        "Date,Name,Year,Letterboxd URI,Rating,Rewatch,Tags,Watched Date",
        '2023-01-15,Bread,1994,https://boxd.example/a,4.5,Yes,"ovens, cinema",2023-01-14',
        "2023-01-16,Rye,,https://boxd.example/b,,,,2023-01-15",
    ),
    "reviews.csv": _csv(
        "Date,Name,Year,Letterboxd URI,Rating,Rewatch,Review,Tags,Watched Date",
        '2023-01-15,Bread,1994,https://boxd.example/a,4.5,Yes,"Warm.\nVery warm.",ovens,2023-01-14',
    ),
    "ratings.csv": _csv(
        "Date,Name,Year,Letterboxd URI,Rating",
        "2023-01-15,Bread,1994,https://boxd.example/f1,4.5",
        "2023-01-15,Rye,1995,https://boxd.example/f2,a lot",
    ),
    "watched.csv": _csv(
        "Date,Name,Year,Letterboxd URI", "2023-01-15,Bread,1994,https://boxd.example/f1"
    ),
    "watchlist.csv": _csv(
        "Date,Name,Year,Letterboxd URI", "2023-01-17,Oats,1996,https://boxd.example/f3"
    ),
    "likes/films.csv": _csv(
        "Date,Name,Year,Letterboxd URI", "2023-01-15,Bread,1994,https://boxd.example/f1"
    ),
}

GOODREADS: Files = {
    "goodreads_library_export.csv": _csv(
        "Book Id,Title,Author,Author l-f,Additional Authors,ISBN,ISBN13,My Rating,Average Rating,"
        "Publisher,Binding,Number of Pages,Year Published,Original Publication Year,Date Read,"
        "Date Added,Bookshelves,Bookshelves with positions,Exclusive Shelf,My Review,Spoiler,"
        "Private Notes,Read Count,Owned Copies",
        '1885,"Bread, a History",Ada Miller,"Miller, Ada","Bo Baker, Cy Cook","=""0679783261""",'
        '"=""9780679783268""",5,4.29,Oven Press,Paperback,279,2000,1813,2025/03/02,2025/01/10,'
        '"ovens, classics","ovens (#1), classics (#2)",read,Still warm.,,Lent to Bo.,1,1',
        '2767,Rye,Bo Baker,"Baker, Bo",,"=""""","=""""",0,3.89,,,,2003,,,2025/04/01,to-read,'
        "to-read (#3),to-read,,,,0,0",
        '2768,Oats,Bo Baker,"Baker, Bo",,,,0,3.89,,,,,,,one day,,,to-read,,,,0,0',
    )
}

RAINDROP: Files = {
    "export.csv": _csv(
        "id,title,note,excerpt,url,folder,tags,created,cover,highlights,favorite",
        '42,"Bread, ""warm""","First line\nsecond line",How to bake,https://example.org/bread,'
        'Ovens/Stone,"rye, wheat",2024-01-02T03:04:05.123Z,https://example.org/c,Salt last,true',
        "43,,,,https://example.org/plain,Unsorted,,soon,,,false",
    )
}

POCKET: Files = {
    "part_000000.csv": _csv(
        "title,url,time_added,tags,status",
        "How to bake,https://example.org/bread,1700000000,rye|wheat flour,unread",
        "https://example.org/plain,https://example.org/plain,1700000100,,archive",
        "Oats,https://example.org/oats,soon,,archive",
    )
}

INSTAPAPER: Files = {
    "instapaper-export.csv": _csv(
        "URL,Title,Selection,Folder,Timestamp,Tags",
        'https://example.org/bread,How to bake,Salt last,Archive,1700000000,"[""rye"",""wheat""]"',
        "https://example.org/plain,Plain,,Unread,1700000100,[]",
        "https://example.org/oats,Oats,,Unread,soon,[]",
    )
}

REDDIT: Files = {
    "posts.csv": _csv(
        "id,permalink,date,ip,subreddit,gildings,title,url,body",
        "p1,https://reddit.example/r/bread/p1,2023-01-15 12:34:56 UTC,,bread,1,My oven,"
        "https://example.org/oven,It is warm.",
    ),
    "comments.csv": _csv(
        "id,permalink,date,ip,subreddit,gildings,link,parent,body,media",
        "c1,https://reddit.example/r/bread/p1/c1,2023-01-15 12:40:00 UTC,,bread,0,"
        'https://reddit.example/r/bread/p1,t1_c0,"Salt, last",',
        "c2,https://reddit.example/r/bread/p1/c2,today,,bread,0,https://reddit.example/p1,,Yes,",
    ),
    "messages_archive.csv": _csv(
        "id,permalink,thread_id,date,ip,from,to,subject,body",
        "m1,https://reddit.example/m/m1,t1,2023-01-16 08:00:00 UTC,,ada,bo,Ovens,Which one?",
    ),
    "chat_history.csv": _csv(
        "message_id,created_at,updated_at,username,message,thread_parent_message_id,channel_url,"
        "subreddit,channel_name,conversation_type",
        "k1,2023-01-16 09:00:00 UTC,,bo,The stone one.,,ch1,bread,Ovens,group",
    ),
    "post_votes.csv": _csv("id,permalink,direction", "p2,https://reddit.example/p2,up"),
    "comment_votes.csv": _csv("id,permalink,direction", "c9,https://reddit.example/c9,down"),
    "saved_posts.csv": _csv("id,permalink", "p3,https://reddit.example/p3"),
    "subscribed_subreddits.csv": _csv("subreddit", "bread", "ovens"),
}

LINKEDIN: Files = {
    "Connections.csv": _csv(
        "Notes:",
        '"When exporting your connection data, you may notice that some addresses are missing."',
        "",
        "First Name,Last Name,URL,Email Address,Company,Position,Connected On",
        'Bo,Baker,https://linkedin.example/in/bo,bo@example.org,"Ovens, Inc.",Baker,12 Mar 2024',
        "Cy,Cook,https://linkedin.example/in/cy,,,,soon",
    ),
    "messages.csv": _csv(
        "CONVERSATION ID,CONVERSATION TITLE,FROM,SENDER PROFILE URL,TO,RECIPIENT PROFILE URLS,DATE,"
        "SUBJECT,CONTENT,FOLDER",
        "c1,Ovens,Bo Baker,https://linkedin.example/in/bo,Ada Miller,"
        'https://linkedin.example/in/ada,2026-08-01 02:00:00 UTC,Stone,"Which one, Ada?",INBOX',
        "c1,Ovens,Ada Miller,https://linkedin.example/in/ada,Bo Baker,"
        "https://linkedin.example/in/bo,2026-08-02 02:00:00 UTC,,The stone one.,INBOX",
    ),
    "Invitations.csv": _csv(
        "From,To,Sent At,Message,Direction,inviterProfileUrl,inviteeProfileUrl",
        'Bo Baker,Ada Miller,"3/11/24, 9:30 PM",Shall we bake?,INCOMING,'
        "https://linkedin.example/in/bo,https://linkedin.example/in/ada",
    ),
    "Shares.csv": _csv(
        "Date,ShareLink,ShareCommentary,SharedUrl,MediaUrl,Visibility",
        "2026-01-20 08:00:00,https://linkedin.example/p/1,On bread,https://example.org/bread,,"
        "MEMBER_NETWORK",
    ),
    "Positions.csv": _csv(
        "Company Name,Title,Description,Location,Started On,Finished On",
        '"Ovens, Inc.",Miller,Flour for all,Rome,Jan 2020,Dec 2023',
    ),
}

AMAZON: Files = {
    "Retail.OrderHistory.1/Retail.OrderHistory.1.csv": _csv(
        "Website,Order ID,Order Date,Purchase Order Number,Currency,Unit Price,Unit Price Tax,"
        "Shipping Charge,Total Discounts,Total Owed,Shipment Item Subtotal,"
        "Shipment Item Subtotal Tax,ASIN,Product Condition,Quantity,Payment Instrument Type,"
        "Order Status,Shipment Status,Ship Date,Shipping Option,Shipping Address,Billing Address,"
        "Carrier Name & Tracking Number,Product Name,Gift Message,Gift Sender Name,"
        "Gift Recipient Contact Details,Item Serial Number",
        'Amazon.example,111-1,2025-07-23T16:31:59Z,Not Applicable,EUR,"1,219.49",219.51,6.1,'
        '\'-14.39\',"1,430.71","1,219.49",219.51,B01,New,1,Visa - 1111,Closed,Shipped,'
        '2025-07-24T05:24:15.525Z,std,"Ada Miller, Rome",Not Available,CARRIER(1),Stone oven,'
        "Bake well,Not Available,Not Available,Not Available",
        "Amazon.example,111-2,2025-07-25T16:31:59Z,Not Applicable,EUR,3.00,0,0,0,3.00,3.00,0,B02,"
        "New,2,Not Available,Closed,Not Available,Not Available,std,Not Available,Not Available,"
        "Not Available,Salt,Not Available,Not Available,Not Available,Not Available",
        "Amazon.example,111-3,soon,Not Applicable,EUR,free,0,0,0,0,0,0,B03,New,1,Not Available,"
        "Cancelled,Not Available,Not Available,std,Not Available,Not Available,Not Available,Rye,"
        "Not Available,Not Available,Not Available,Not Available",
    )
}

DISCORD: Files = {
    "Messages/c100/channel.json": as_json(
        {"id": "100", "type": "GUILD_TEXT", "name": "ovens", "guild": {"id": "9", "name": "Bread"}}
    ),
    "Messages/c100/messages.json": as_json(
        [
            {
                "ID": 1100000000000000001,
                "Timestamp": "2023-05-01 18:30:45",
                "Contents": "Which one?",
                "Attachments": "https://cdn.example/a.jpg https://cdn.example/b.jpg",
            },
            {"ID": 1100000000000000002, "Timestamp": "soon", "Contents": "", "Attachments": ""},
        ]
    ),
    "Messages/c200/channel.json": as_json({"id": "200", "type": "DM", "recipients": ["7", "8"]}),
    "Messages/c200/messages.csv": _csv(
        "ID,Timestamp,Contents,Attachments",
        '900000000000000003,2020-05-01 10:00:00.123000+00:00,"Stone, of course",',
    ),
}


def _discord_channel(
    name: str, kind: str, topic: str | None, *messages: dict[str, object]
) -> bytes:
    return as_json(
        {
            "guild": {"id": "9", "name": "Bread"},
            "channel": {
                "id": "100",
                "type": kind,
                "category": "Baking",
                "name": name,
                "topic": topic,
            },
            "dateRange": {"after": None, "before": None},
            "messages": messages,
            "messageCount": len(messages),
        }
    )


def _discord_message(number: int, at: str, text: str, **more: object) -> dict[str, object]:
    author = {"id": "7", "name": "ada", "nickname": "Ada", "isBot": False}
    message: dict[str, object] = {
        "id": str(1_100_000_000_000_000_000 + number),
        "type": "Default",
        "timestamp": at,
        "timestampEdited": None,
        "callEndedTimestamp": None,
        "isPinned": False,
        "content": text,
        "author": author,
        "attachments": [],
        "reactions": [],
        "mentions": [],
    }
    return message | more


DISCORD_CHANNELS: Files = {
    "Bread - Baking - ovens [100].json": _discord_channel(
        "ovens",
        "GuildTextChat",
        "Of stone and of steel",
        _discord_message(1, "2023-05-01T20:30:45.123+02:00", "Which one?"),
        _discord_message(
            2,
            "2023-05-01T18:31:00+00:00",
            "Stone, of course",
            type="Reply",
            timestampEdited="2023-05-01T18:32:00+00:00",
            author={"id": "8", "name": "bob", "nickname": None, "isBot": False},
            attachments=[{"id": "5", "url": "https://cdn.example/a.jpg", "fileName": "a.jpg"}],
            reactions=[{"emoji": {"id": None, "name": "❤"}, "count": 2}],
            mentions=[{"id": "7", "name": "ada", "nickname": "Ada", "isBot": False}],
            reference={"messageId": "1100000000000000001", "channelId": "100", "guildId": "9"},
        ),
        _discord_message(3, "soon", "Rye"),
    ),
    "Direct Messages - Private - bob [200].json": _discord_channel(
        "bob",
        "DirectTextChat",
        None,
        _discord_message(
            4,
            "2023-05-02T10:00:00+00:00",
            "Started a call that lasted 2 minutes.",
            type="Call",
            callEndedTimestamp="2023-05-02T10:02:00+00:00",
        ),
    ),
}

_CHAT = "Takeout/Google Chat/Groups/Space AAA"
GOOGLECHAT: Files = {
    f"{_CHAT}/group_info.json": as_json(
        {"name": "Ovens", "members": [{"name": "Ada", "email": "ada@example.org"}]}
    ),
    f"{_CHAT}/messages.json": as_json(
        {
            "messages": [
                {
                    "creator": {"name": "Ada", "email": "ada@example.org", "user_type": "Human"},
                    "created_date": "Friday, January 5, 2024 at 10:11:12\u202fAM UTC",
                    "updated_date": "Friday, January 5, 2024 at 10:12:00\u202fPM UTC",
                    "text": "Which one?",
                    "topic_id": "t1",
                    "message_id": "AAA/t1/m1",
                    "attached_files": [{"original_name": "a.jpg", "export_name": "File-a.jpg"}],
                    "reactions": [
                        {"emoji": {"unicode": "🍞"}, "reactor_emails": ["b@example.org"]}
                    ],
                },
                {
                    "creator": {"name": "Bo", "email": "bo@example.org", "user_type": "Human"},
                    "created_date": "Friday, January 5, 2024 at 10:13:00 AM UTC",
                    "message_state": "DELETED",
                    "topic_id": "t1",
                },
                {
                    "message_state": "DELETED",
                    "deleted_date": "Friday, January 5, 2024 at 8:44:40 PM UTC",
                    "topic_id": "t1",
                    "deletion_metadata": {"deletion_type": "CREATOR"},
                    "message_id": "AAA/t1/m3",
                },
                {"created_date": "somewhen"},
            ]
        }
    ),
}

TABLE_SPECIMENS: dict[str, Files] = {
    "netflix": NETFLIX,
    "letterboxd": LETTERBOXD,
    "goodreads": GOODREADS,
    "raindrop": RAINDROP,
    "pocket": POCKET,
    "instapaper": INSTAPAPER,
    "reddit": REDDIT,
    "linkedin": LINKEDIN,
    "amazon": AMAZON,
    "discord": DISCORD,
    "discord_channels": DISCORD_CHANNELS,
    "googlechat": GOOGLECHAT,
}
