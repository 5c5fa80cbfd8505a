"""Tables that an earlier version made: they get what they lack, and are made anew in slices."""

from __future__ import annotations

from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.layout import FORM
from personal_server.storage.sql.records.record_copies import BEGIN_EMPTYING, copy_under_way
from personal_server.storage.sql.source_tables import SourceTables, all_sources


def adopt(database: Database, subject_id: str) -> None:
    """Give tables of an older form the columns and the empty word index that they lack.

    They can be read and written then as those of today, and are made anew in slices (`want`).
    """
    with database.read() as session:
        if not _of_older_form(session, subject_id):
            return
    with database.write() as session:
        for source in _of_older_form(session, subject_id):
            number = source.tables
            if not session.first(session.dialect.find_column, (f"r{number}", "wc")):
                session.run(f"ALTER TABLE r{number} ADD COLUMN wc BLOB")
                for statement in session.dialect.word_index(f"w{number}"):
                    session.run(statement)
            session.run(f"ALTER TABLE h{number} ADD COLUMN sum INTEGER")
            under_way = copy_under_way(session, source.source)
            if under_way is not None:  # to tables of the older form
                session.run(BEGIN_EMPTYING, (1, *under_way[:2]))


def _of_older_form(session: Session, subject_id: str) -> list[SourceTables]:
    return [
        source
        for source in all_sources(session, subject_id)
        if source.layout.form != FORM
        and not session.first(session.dialect.find_column, (f"h{source.tables}", "sum"))
    ]
