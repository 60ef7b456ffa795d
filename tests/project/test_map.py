"""The map of subjects is what the package has, and no folder grows beyond what can be read at a glance."""

from conftest import ROOT

from theory.core.subjects import SUBJECTS


def test_the_page_is_what_the_package_has(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import _map

    assert (ROOT / "docs" / "map.md").read_text(encoding="utf-8") == _map.page(), "python docs/_map.py writes it again"


def test_folders_of_subjects_have_their_names_and_at_most_twenty_modules():
    parts = [path for path in (ROOT / "theory").rglob("*") if path.is_dir() and path.name != "__pycache__"]
    assert {path.name: len(found) for path in parts if len(found := [*path.glob("*.py")]) > 20} == {}
    for part in ("bounds", "claims", "studies"):
        own = {path.stem for path in (ROOT / "theory" / part).glob("*") if path.stem in SUBJECTS}
        assert own == set(SUBJECTS) - ({"sgd"} if part == "studies" else set()), part
