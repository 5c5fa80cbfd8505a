"""IMAP over two pipes: commands out, responses in, each bounded.

Rule: a literal is handed on as it comes, so that what was sent before a connection was cut is not
asked for again; a line or a literal beyond its bound ends the conversation.
Source: RFC 3501 and 9051, sections 4 and 7.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import IO

import msgspec

LONGEST_LINE_BYTES = 1_000_000
LONGEST_UIDS_BYTES = 16 * 1024 * 1024
LARGEST_LITERAL_BYTES = 1024 * 1024
PIECE_BYTES = 64 * 1024
_DEEPEST = 20
_STATUS = re.compile(rb"\* (OK|NO|BAD|BYE|PREAUTH)\b", re.IGNORECASE)
_ABANDONED = b"AQ=="
_CODE = re.compile(rb"\[([A-Z-]+)(?: ([^\]]{0,4000}))?\]", re.IGNORECASE)
_LITERAL = re.compile(rb"\{(\d{1,20})\+?\}$")
_TOKEN = re.compile(
    rb' *(?:(?P<open>\()|(?P<close>\))|"(?P<quoted>(?:[^"\\\r\n]|\\.)*)"'
    rb"|(?P<atom>[A-Z0-9.]+\[[^\]]*\](?:<\d+>)?(?=[\s()]|$)|[^\s()\"]+))",
    re.IGNORECASE,
)
_ESCAPED = re.compile(rb"\\(.)")
_QUOTABLE = re.compile(rb"[\x20-\x7e]{0,1000}")
Token = bytes | None | list["Token"]
Sink = Callable[[bytes], None]


class WireCut(Exception):
    """The connection ended."""


class WireBroken(Exception):
    """The server says what no mail server says."""


class CommandRefused(Exception):
    """The server answered a command with NO or BAD."""


class Response(msgspec.Struct, frozen=True):
    """An untagged response: its first word or number, and the others.

    In: `* 12 FETCH (UID 5)`.  Out: word `12`, tokens `[b"FETCH", [b"UID", b"5"]]`.
    """

    word: bytes
    tokens: list[Token]


class ImapWire(msgspec.Struct):
    """A conversation.

    Shapes: `stream_body` is given the line that announces a literal and its size, and returns where
        its bytes go as they come, or None where the literal is to be held as a token.
    """

    incoming: IO[bytes]
    outgoing: IO[bytes]
    commands: int = 0
    stream_body: Callable[[bytes, int], Sink | None] | None = None
    longest_line_bytes: int = LONGEST_LINE_BYTES
    codes: dict[bytes, bytes] = msgspec.field(default_factory=dict[bytes, bytes])
    """Of the responses to the last command, what stood in brackets: `UIDNEXT` and its number."""

    def greeting(self) -> None:
        """Raises: WireCut, WireBroken."""
        line, _ = self._line()
        if not line.startswith((b"* OK", b"* PREAUTH")):
            raise WireBroken

    def run(self, *parts: bytes) -> list[Response]:
        """Send a command and hold its responses.  Raises: CommandRefused, WireCut, WireBroken."""
        return list(self.stream(*parts))

    def stream(self, *parts: bytes) -> Iterator[Response]:
        """Send a command, and its responses as they come.

        Shapes: a part that cannot be quoted is sent as a literal; what the server asks for
            meanwhile is answered with nothing.
        Raises: CommandRefused, WireCut, WireBroken.
        """
        self.commands += 1
        self.codes.clear()
        tag = b"P%d" % self.commands
        yield from self._sent(tag, parts)
        while True:
            line, tokens = self._line()
            if line.startswith(b"+"):
                self._write(b"\r\n")
            elif line.startswith(b"* "):
                found = self._untagged(tokens)
                if found is not None:
                    yield found
            elif line.startswith(tag + b" "):
                self._note_code(line)
                if line[len(tag) + 1 :][:2].upper() != b"OK":
                    raise CommandRefused
                return
            else:
                raise WireBroken

    def authenticate(self, mechanism: bytes, response: bytes, *, at_once: bool) -> None:
        """Sign in by a mechanism of one response; whatever a server asks for after it, it refuses,
        and is answered with what ends that (RFC 7628, 3.2.3).

        Shapes: `at_once` sends the response with the command (RFC 4959).
        Raises: CommandRefused, WireCut, WireBroken.
        """
        self.commands += 1
        self.codes.clear()
        tag = b"P%d" % self.commands
        command, answers = tag + b" AUTHENTICATE " + mechanism, [response, _ABANDONED]
        if at_once:
            command += b" " + answers.pop(0)
        self._write(command + b"\r\n")
        while True:
            line, _ = self._line()
            if line.startswith(b"+") and answers:
                self._write(answers.pop(0) + b"\r\n")
            elif line.startswith(tag + b" "):
                self._note_code(line)
                if line[len(tag) + 1 :][:2].upper() != b"OK":
                    raise CommandRefused
                return
            elif not line.startswith(b"* "):
                raise WireBroken

    def idle(self, seconds: float) -> Iterator[Response]:
        """What a server says of the open folder for so long.

        The timer of the process ends it, also where the server says nothing.  A server that ends it
        sooner is broken: it would be asked again and again without a pause.  The timer that was set
        before, by which this process ends with its parent, is set again afterwards.
        Source: RFC 2177.
        Raises: CommandRefused, WireCut, WireBroken.
        """
        self.commands += 1
        tag = b"P%d" % self.commands
        self._write(tag + b" IDLE\r\n")
        before = signal.signal(signal.SIGALRM, self._done)
        rings = signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            while True:
                line, tokens = self._line()
                if line.startswith(b"* "):
                    found = self._untagged(tokens)
                    if found is not None:
                        yield found
                elif line.startswith(tag + b" "):
                    if line[len(tag) + 1 :][:2].upper() != b"OK":
                        raise CommandRefused
                    if signal.getitimer(signal.ITIMER_REAL)[0]:
                        raise WireBroken
                    return
                elif not line.startswith(b"+"):
                    raise WireBroken
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            signal.setitimer(signal.ITIMER_REAL, *rings)

    def _done(self, *_: object) -> None:
        self._write(b"DONE\r\n")

    def _sent(self, tag: bytes, parts: Sequence[bytes]) -> Iterator[Response]:
        """Send the parts, and yield what the server says before it takes a literal."""
        line = tag
        for part in parts:
            if not part.startswith(LITERAL_MARK):
                line += b" " + part
                continue
            content = part.removeprefix(LITERAL_MARK)
            self._write(line + b" {%d}\r\n" % len(content))
            while True:
                response, tokens = self._line()
                if response.startswith(b"+"):
                    break
                if not response.startswith(b"* "):
                    raise CommandRefused
                found = self._untagged(tokens)
                if found is not None:
                    yield found
            line = content
        self._write(line + b"\r\n")

    def _untagged(self, tokens: list[Token]) -> Response | None:
        word = tokens[1] if len(tokens) > 1 else None
        if not isinstance(word, bytes):
            raise WireBroken
        if word.upper() == b"BYE":
            raise WireCut
        return Response(word.upper(), tokens[2:])

    def _note_code(self, line: bytes) -> None:
        match = _CODE.search(line)
        if match:
            self.codes[match[1].upper()] = match[2] or b""

    def _line(self) -> tuple[bytes, list[Token]]:
        """A response up to its end: its first line, and all of it in tokens."""
        first, tokens = b"", _Tokens()
        while True:
            line = self.incoming.readline(self.longest_line_bytes + 1)
            if len(line) > self.longest_line_bytes:
                raise WireBroken
            if not line.endswith(b"\n"):
                raise WireCut
            line = line.rstrip(b"\r\n")
            first = first or line
            literal = _LITERAL.search(line)
            if literal is None:
                status = _STATUS.match(first)
                if status:  # words for a person follow, which are no tokens
                    self._note_code(first)
                    return first, [b"*", status[1]]
                if first.startswith(b"* "):
                    tokens.read(line)
                return first, tokens.whole()
            tokens.read(line[: literal.start()])
            tokens.add(self._literal(line, int(literal[1])))

    def _literal(self, line: bytes, size: int) -> bytes:
        """The bytes that were announced, or nothing where they were handed on."""
        sink = self.stream_body(line, size) if self.stream_body is not None else None
        if sink is None and size > LARGEST_LITERAL_BYTES:
            raise WireBroken
        chunks: list[bytes] = []
        take: Sink = chunks.append if sink is None else sink
        while size:
            piece = self.incoming.read(min(size, PIECE_BYTES))
            if piece:
                take(piece)
            size -= len(piece)
            if not piece:
                raise WireCut
        return b"".join(chunks)

    def _write(self, content: bytes) -> None:
        try:
            self.outgoing.write(content)
            self.outgoing.flush()
        except OSError:
            raise WireCut from None


LITERAL_MARK = b"\x00literal\x00"


def quoted(text: bytes) -> bytes:
    """A string as a command takes it: in quotes, or marked to be sent as a literal."""
    if _QUOTABLE.fullmatch(text):
        return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
    return LITERAL_MARK + text


class _Tokens:
    """Tokens that become nested lists."""

    def __init__(self) -> None:
        self._open: list[list[Token]] = [[]]

    def read(self, line: bytes) -> None:
        """Take those of a line.  Raises: WireBroken."""
        at = 0
        while match := _TOKEN.match(line, at):
            at = match.end()
            if match["open"]:
                if len(self._open) > _DEEPEST:
                    raise WireBroken
                self._open.append([])
            elif match["close"]:
                if len(self._open) == 1:
                    raise WireBroken
                inner = self._open.pop()
                self._open[-1].append(inner)
            elif match["quoted"] is not None:
                self.add(_ESCAPED.sub(rb"\1", match["quoted"]))
            else:
                self.add(None if match["atom"].upper() == b"NIL" else match["atom"])
        if line[at:].strip():
            raise WireBroken

    def add(self, token: Token) -> None:
        """Take one."""
        self._open[-1].append(token)

    def whole(self) -> list[Token]:
        """All, once every list has ended.  Raises: WireBroken."""
        if len(self._open) != 1:
            raise WireBroken
        return self._open[0]
