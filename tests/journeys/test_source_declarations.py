"""The declaration of every source is one that the server takes."""

from __future__ import annotations

from pathlib import Path

from pdpp_kernel.person_fields import PersonForm
from pdpp_kernel.values import ValueKind
from pdpp_sources.common.source import SourceReader
from personal_server.domain.declaration_document import parse_declaration
from sources.tests.specimens.files import as_folder
from sources.tests.test_contract import every_source, fitted, specimen

BY_NAME = (PersonForm.ADDRESS, PersonForm.WRITTEN)


@every_source
def test_its_declaration_is_valid(source: SourceReader, tmp_path: Path) -> None:
    declared = parse_declaration(fitted(source, as_folder(specimen(source), tmp_path)).declaration)
    assert declared.connector_key.startswith(source.connector_key)
    for stream in declared.streams.values():
        more = {name for p in stream.properties.values() for name in (p.label_field, p.mark_field)}
        assert all(stream.properties[name].kind is ValueKind.STRING for name in more if name)
        for field in stream.person_fields:
            named = [field.named_by, *([field.field] if field.form in BY_NAME else [])]
            found = [stream.properties[name] for name in named if name]
            assert all(each.is_caseless for each in found if each.kind is ValueKind.STRING)
