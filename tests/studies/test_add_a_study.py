"""A study of one's own is one file: the command runs it, draws its figure, and writes its record and its page."""

from __future__ import annotations

import json
import re

import pytest
from conftest import ROOT

from theory.experiment.cli import main
from theory.reporting.figure_records import read_record, record_path
from theory.studies import report

FILE = '''"""Squares of a few numbers, to see where a study goes."""

from typing import NamedTuple

from theory.core import setting
from theory.plots import new_figure
from theory.studies.shared.report import Study, Table
from theory.studies.shared.verdicts import Statement


@setting
class Options(NamedTuple):
    largest: int = 4


def collect(quick, options):
    return {"squares": [n * n for n in range(2 if quick else options.largest)]}


def report(squares):
    table = Table("Squares", ("n", "n^2"), [(str(n), str(s)) for n, s in enumerate(squares)])

    def draw():
        figure, axes = new_figure()
        axes[0, 0].plot(squares)
        return figure

    said = [Statement("grow", "they grow", [b > a for a, b in zip(squares, squares[1:])], f"up to {squares[-1]}")]
    rows = {"squares": []}
    return Study("squares", "Squares", "Numbers and their squares.", rows, [table], said, draw, "A parabola.")
'''


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "squares_of_numbers.py"
    path.write_text(FILE)
    return path


def test_a_file_is_a_study(study, tmp_path, capsys):
    assert main(["study", str(study), "--figures", str(tmp_path), "--markdown", str(tmp_path / "page.md")]) == 0
    shown = capsys.readouterr().out
    assert "squares-of-numbers: Squares of a few numbers" in shown and "they grow" in shown
    found = json.loads((tmp_path / "records" / "study-squares-of-numbers.json").read_text())
    assert found["found"] == {"squares": [0, 1, 4, 9]}
    assert (tmp_path / "study-squares-of-numbers.png").stat().st_size > 1000
    assert "up to 9" in (tmp_path / "page.md").read_text()


def test_the_study_of_the_documentation_is_one(tmp_path, capsys):
    """At most 60 lines; its figure, record and page are written, and the record is judged again as it was."""
    page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"## A study of your own\n.*?```python\n(.*?)```", page, re.DOTALL)
    assert len(code.splitlines()) <= 60
    path = tmp_path / "memory_helps.py"
    path.write_text(code, encoding="utf-8")
    figures, page = str(tmp_path / "figures"), tmp_path / "page.md"
    assert main(["study", str(path), "--quick", "--figures", figures, "--markdown", str(page)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert 'holds (our comparison): "With a memory the loss at the end is lower." breast_cancer: ' in shown
    assert "**holds** (our comparison)" in page.read_text(encoding="utf-8")
    record = read_record(record_path(figures, "study-memory-helps"))
    assert [len(loss) for _, _, loss in record.found["rows"]] == [5] * 4
    (said,) = report(str(path), record.found).statements
    assert said.verdict == "holds" and said.numbers in shown


@pytest.mark.parametrize("wrong, message", [("nowhere.py", "a Python file that exists"), (None, "no function collect")])
def test_other_files_are_refused(wrong, message, tmp_path, capsys):
    if wrong is None:
        wrong = tmp_path / "empty_study_file.py"
        wrong.write_text("")
    with pytest.raises(SystemExit) as stop:
        main(["study", str(wrong)])
    assert stop.value.code == 2 and message in capsys.readouterr().err


def test_every_study_of_the_package_is_a_file_of_the_folder():
    from theory.studies import STUDIES

    files = {path.stem.replace("_", "-") for path in (ROOT / "theory" / "studies").glob("*.py")} - {"--init--"}
    assert set(STUDIES) == files and all(STUDIES.values())
