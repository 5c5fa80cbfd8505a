"""What a mailbox holds, in the words of the consent page."""

from __future__ import annotations

from personal_server.sources.declaration import (
    Stream,
    blob,
    declaration,
    flag,
    integer,
    key,
    moment,
    names,
    plain,
    reference,
    text,
    word,
)

MESSAGES = Stream(
    "messages",
    "Your e-mails",
    "Sender, recipients, date, subject, text and labels of every message.",
    [
        key(),
        reference("thread_id", "Messages of one conversation share it"),
        moment("sent_at", "When it was sent, in UTC", event=True),
        text("subject", "Subject line", title=True),
        text("from_name", "Name of the sender"),
        word("from_address", "E-mail address of the sender, lower case", searched=True),
        names("to", "Recipients, as name and address"),
        names("cc", "Recipients of a copy"),
        names("bcc", "Recipients of a blind copy"),
        word("to_address", "E-mail address of the first recipient, lower case"),
        text("recipients", "Names and addresses of all recipients, to search in"),
        plain("reply_to", "Where answers are asked to go"),
        text("body", "The text; of HTML mails what a reader sees, without markup"),
        names("labels", "Labels or folders the mail program gave it"),
        text("labelled", "All labels, to search in"),
        word("mailbox", "Name of the mailbox file or folder it was found in"),
        word("list_id", "Mailing list it came through"),
        flag("is_reply", "Whether it answers another message"),
        integer("attachment_count", "Number of attached files", summed=True),
        integer("size_bytes", "Size of the whole message in bytes", summed=True),
        plain("internet_message_id", "The Message-ID of the mail standard, without brackets"),
        plain("in_reply_to", "Message-ID of the message it answers"),
    ],
    time_field="sent_at",
    views={
        "headers": (
            "Who, when and subject, without the text",
            ["id", "thread_id", "sent_at", "subject", "from_name", "from_address", "to", "cc"],
        ),
        "traffic": ("Only who and when", ["id", "sent_at", "from_address", "to"]),
    },
    children={"attachments": ("attachments", "message_id")},
    semantic=["subject", "body"],
)

ATTACHMENTS = Stream(
    "attachments",
    "Files attached to your e-mails",
    "Name, type, size and content of every attached file.",
    [
        key(),
        reference("message_id", "The message it came with", required=True),
        moment("sent_at", "When the message was sent, in UTC", event=True),
        text("filename", "Name of the file", title=True),
        word("mime_type", "Kind of file"),
        integer("size_bytes", "Size in bytes", summed=True),
        blob(),
    ],
    time_field="sent_at",
    views={"names": ("Names only", ["id", "message_id", "sent_at", "filename", "mime_type"])},
    parents={"message": ("messages", "message_id")},
)

DECLARATION = declaration(
    "mail", "E-mail", "Messages and attachments of a mailbox.", [MESSAGES, ATTACHMENTS]
)

HOW_TO_EXPORT = (
    "Gmail: takeout.google.com, choose Mail, download the zip. Thunderbird: copy the folder's file "
    "without extension from the profile. Apple Mail: Mailbox > Export Mailbox. Others: any .mbox, "
    "Maildir folder or .eml files."
)
