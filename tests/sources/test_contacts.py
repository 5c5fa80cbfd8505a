from pathlib import Path

from tests.sources.reading import read_path, records_of, skips_of
from tests.sources.specimens import SPECIMENS, as_zip


def test_cards_of_every_version(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["contacts"], tmp_path / "export.zip"))
    old, new = records_of(items, "contacts")
    assert old["display_name"] == "Jürgen Müller"
    assert old["note"] == "first line\nsecond line"
    assert old["photo"]["size_bytes"] == 6
    assert new["emails"] == ["ada@example.org"]
    assert new["organization"] == "Analytical Engines, Ltd, Notes"
    assert new["addresses"] == ["12 St James's Square, London, SW1Y, England"]
    assert new["categories"] == ["friends", "mathematics"]
    assert skips_of(items) == ["bad_record"]
