"""Processes that read what files say: as many as threads ask at once."""

from __future__ import annotations

from contextlib import suppress
from typing import BinaryIO

from pdpp_kernel.source_item import FileText, TextState
from pdpp_kernel.system.confinement import Limits
from pdpp_sources.reader_child import ReaderChild, ReaderEnded
from pdpp_sources.reader_messages import ReadFile, SaidByFile
from pdpp_sources.reader_refusals import too_costly


class TextProcesses:
    """Each reads one file after the other, for whoever asks next, until a file ends it.

    Shapes: `faults` gets errors of their own that they met.
    """

    def __init__(self, limits: Limits, faults: list[str]) -> None:
        self._limits = limits
        self._faults = faults
        self._all: list[ReaderChild] = []
        self._idle: list[ReaderChild] = []
        self._is_left = False

    def text_of(self, content: BinaryIO, request: ReadFile) -> FileText:
        """What a file says.  Raises: ExportTooCostly, if no process starts, or all were left."""
        while True:
            child, has_read_others = self._free()
            content.seek(0)
            try:
                reply = child.ask(request, content)
                if isinstance(reply, SaidByFile):
                    self._idle.append(child)
                    return FileText(reply.state, reply.text)
            except ReaderEnded as ended:
                if ended.fault is not None:
                    self._faults.append(ended.fault)
            is_out_of_time = child.ended_by_time()
            child.close()
            self._all.remove(child)
            # A process that has read others may have ended on what they left in its memory.
            if is_out_of_time or not has_read_others:
                return FileText(TextState.TOO_COSTLY)

    def leave(self) -> None:
        """End them, whatever they read."""
        self._is_left = True
        for child in list(self._all):
            child.close()

    def _free(self) -> tuple[ReaderChild, bool]:
        """One that nobody waits for, and whether it has read others.  Raises: ExportTooCostly."""
        with suppress(IndexError):
            return self._idle.pop(), True
        child = ReaderChild(self._limits)
        self._all.append(child)
        if self._is_left:
            child.close()
            raise too_costly()
        return child, False
