import imaplib

IMAPClientError = imaplib.IMAP4.error

class LoginError(imaplib.IMAP4.error): ...
