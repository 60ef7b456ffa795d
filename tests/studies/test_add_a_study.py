"""A study of one's own is one file: the command runs it, draws its figure, and writes its record and its page."""

from __future__ import annotations

import json
import re
import shlex
import sys
import warnings

import numpy as np
import pytest
from conftest import ROOT, find_mpirun, run_group

import theory as th
from theory.core.subjects import SUBJECTS
from theory.experiment.cli import main
from theory.reporting.json_values import read_record, record_path

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
def write(tmp_path, monkeypatch):
    """Write a file of this text, with replacements, to a folder from which commands are run; its name."""
    monkeypatch.chdir(tmp_path)
    written = []

    def file(name="squares_of_numbers.py", text=FILE, **changes):
        for old, new in changes.values():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        sys.modules.pop(name.removesuffix(".py"), None)
        written.append(name.removesuffix(".py"))
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    yield file
    for name in written:
        sys.modules.pop(name, None)


def refused(argv, capsys) -> str:
    with pytest.raises(SystemExit, match="2"):
        main(argv)
    return capsys.readouterr().err


NEVER = ('return {"squares"', 'raise AssertionError("measured")\n    return {"squares"')
RECORD = "figures/records/study-squares-of-numbers.json"


def test_a_file_is_a_study(write, tmp_path, capsys):
    assert main(["study", write(), "--figures", str(tmp_path), "--markdown", str(tmp_path / "pages")]) == 0
    shown = capsys.readouterr().out
    assert "squares-of-numbers: Squares of a few numbers" in shown and "they grow" in shown
    found = json.loads((tmp_path / "records" / "study-squares-of-numbers.json").read_text())
    assert found["found"] == {"squares": [0, 1, 4, 9]} and found["how"]["options"] == {"largest": 4}
    assert (tmp_path / "study-squares-of-numbers.png").stat().st_size > 1000
    assert "up to 9" in (tmp_path / "pages" / "squares-of-numbers.md").read_text()


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_of_the_documentation_can_be_followed(write, tmp_path, capsys, monkeypatch):
    """Its file has at most 60 lines; every block runs, one after the other: study, record, configuration, costs."""
    page = (ROOT / "docs" / "add-a-claim.md").read_text(encoding="utf-8")
    section = page.partition("## A study of your own\n")[2].partition("\n### ")[0]
    blocks = re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "sh", "python", "toml", "sh", "python"]
    code, first, again, toml, second, costs = (text for _, text in blocks)
    assert len(code.splitlines()) <= 60

    def run(commands):
        printed = []
        for command in commands.splitlines():
            argv = shlex.split(command, comments=True)
            assert argv[:3] == ["python", "-m", "theory.experiment"]
            assert main([*argv[3:], *(["--quick"] if argv[3] != "figures" and "--quick" not in argv else [])]) == 0
            printed.append(" ".join(capsys.readouterr().out.split()))
        return printed

    write("memory_helps.py", code)
    _, measured, drawn = run(first)
    said = 'holds (our comparison): "With a memory the loss at the end is lower." breast_cancer: '
    assert said in measured and said in drawn and "record:" in measured and "record:" not in drawn
    assert "**holds** (our comparison)" in (tmp_path / "pages" / "memory-helps.md").read_text(encoding="utf-8")
    record = read_record(record_path("figures", "study-memory-helps"))
    assert [len(loss) for _, _, loss in record.found["rows"]] == [10] * 4
    exec(again, {})
    assert capsys.readouterr().out.split() == ["holds"]

    (tmp_path / "two_entries.toml").write_text(toml, encoding="utf-8")
    measured, drawn, both = run(second)
    assert "two_entries: Two entries of each message, six seeds" in measured and "Top-2 on four workers" in measured
    assert "study-two_entries.png" in drawn and "study-memory-helps" not in drawn
    assert "study-two_entries.png" in both and "study-memory-helps.png" in both
    record = read_record(record_path("figures", "study-two_entries"))
    assert record.how["options"] == {"k": 2, "seeds": 6} and record.how["seed"] == 1 and record.found["k"] == 2
    assert [len(loss) for _, _, loss in record.found["rows"]] == [6] * 4

    with warnings.catch_warnings():
        warnings.simplefilter("error", th.LongStepWarning)
        found: dict = {}
        exec(costs, found)
    assert len(found["bits"]) == 5 and np.isfinite(found["bits"]).all()
    assert "bits, " in capsys.readouterr().out
    history = th.run(
        th.ParallelSGD(
            th.TopK(5), step=th.Constant(2.0 ** found["e"] / found["L"]), feedback=th.ErrorFeedback(), batch=4
        ),
        found["problem"],
        workers=4,
        steps=1000,
        seed=0,
        record_every=5,
    ).history
    before = history["f"][history["bits_up"] < found["bits"][0]]
    assert (before > found["goal"]).all() and before.size > 0  # that is where it got there first


# --- records ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [["--figures", "figures"], []])
def test_a_mistake_in_a_report_loses_no_measurement(write, tmp_path, capsys, flags):
    broken = write(bad=('Table("Squares"', 'Table(squares["one"]'))
    with pytest.raises(TypeError, match="list indices"):
        main(["study", broken, *flags])
    assert f"record: {RECORD}" in capsys.readouterr().out
    assert main(["figures", write(never=NEVER), "--tables"]) == 0  # corrected; nothing is measured again
    shown = capsys.readouterr().out
    assert "up to 9" in shown and (tmp_path / "figures/study-squares-of-numbers.png").is_file()
    assert main(["figures", write(never=NEVER), "--record", RECORD, "--figures", "others"]) == 0
    assert (tmp_path / "others/study-squares-of-numbers.png").is_file()


def test_a_record_never_has_a_file_run_that_nobody_named(write, tmp_path, capsys):
    assert main(["study", write(), "--figures", "figures"]) == 0
    write(text="open('it_was_run', 'w')\n")
    for name in ("study-squares-of-numbers", "squares-of-numbers"):
        said = refused(["figures", name], capsys)
        assert "is of squares_of_numbers.py, which runs only if it is named: figures squares_of_numbers.py" in said
    for argv in (["run", "--config", RECORD], ["plot", RECORD]):
        said = refused(argv, capsys)
        assert f"{RECORD} is the record of a figure" in said
        assert f"figures squares_of_numbers.py --record {RECORD}" in said
    assert not (tmp_path / "it_was_run").exists()


def test_figures_of_a_file_without_a_record_are_measured(write, capsys):
    assert main(["figures", write(), "--tables"]) == 0
    shown = capsys.readouterr().out
    assert "study-squares-of-numbers: measuring" in shown and "up to 9" in shown and RECORD in shown


def test_a_sweep_goes_on_after_a_kill_and_its_tasks_leave_the_same_records(write, tmp_path, capsys):
    """Cells one after the other, of which one stops the process; again, without it; and each as a task of its own."""
    write(old=("return {", "if options.largest == 5:\n        raise KeyboardInterrupt\n    return {"))
    cells = [f"cell-{k}.toml" for k in range(3)]
    for k, cell in enumerate(cells):
        (tmp_path / cell).write_text(f'study = "squares_of_numbers.py"\nlargest = {3 + 2 * k}\n')

    def records(folder):
        kept = {path.stem: read_record(path) for path in sorted((tmp_path / folder / "records").glob("*.json"))}
        return {name: (record.how, record.found) for name, record in kept.items()}

    assert main(["figures", *cells, "--figures", "sweep"]) == 130
    assert [found["squares"][-1] for _, found in records("sweep").values()] == [4]
    written = record_path(tmp_path / "sweep", "study-cell-0").stat().st_mtime_ns
    write()
    assert main(["figures", *cells, "--figures", "sweep"]) == 0
    assert record_path(tmp_path / "sweep", "study-cell-0").stat().st_mtime_ns == written
    for cell in reversed(cells):
        assert main(["figures", cell, "--figures", "tasks"]) == 0
    assert records("sweep") == records("tasks") and len(records("tasks")) == 3


@pytest.mark.parametrize("executor", ["submitit", pytest.param("mpi", marks=pytest.mark.mpi)])
def test_an_executor_leaves_the_same_records(write, tmp_path, executor):
    """As in the documentation: tasks of submitit, and ranks of mpi4py.futures; again, and nothing is measured again."""
    write()
    cells = [f"cell-{k}.toml" for k in range(2)]
    for k, cell in enumerate(cells):
        (tmp_path / cell).write_text(f'study = "squares_of_numbers.py"\nlargest = {3 + 2 * k}\n')
    script = [str(ROOT / "docs" / "examples" / "sweep.py"), executor, *cells]
    first = [sys.executable] if executor == "submitit" else [find_mpirun(), "-n", "2", sys.executable, "-m"]
    command = [*first, *(["mpi4py.futures"] if executor == "mpi" else []), *script]
    written = []
    for _ in range(2):
        done = run_group(command, timeout=300, env={"PYTHONPATH": ROOT}, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        written.append([record_path(tmp_path / "sweep", f"study-cell-{k}").stat().st_mtime_ns for k in range(2)])
    assert written[0] == written[1]
    assert main(["figures", *cells, "--figures", "here"]) == 0
    for k in range(2):
        one, other = (read_record(record_path(tmp_path / folder, f"study-cell-{k}")) for folder in ("sweep", "here"))
        assert one.found == other.found and len(one.found["squares"]) == 3 + 2 * k


def test_values_that_no_record_can_hold_are_shown_all_the_same(write, capsys):
    bad = write(bad=("return {", "return {'f': print, "), take=("report(squares)", "report(squares, f)"))
    assert main(["study", bad]) == 0 and main(["study", bad, "--figures", "figures"]) == 1
    shown = capsys.readouterr().out
    assert "no record, as collect returned what cannot be written: value: got a builtin" in shown and "up to 9" in shown


# --- configurations ---------------------------------------------------------------------------------------------------


def test_a_file_of_settings_names_a_study_beside_it(write, tmp_path, capsys):
    (tmp_path / "below").mkdir()
    (tmp_path / "below/mine.toml").write_text('study = "../squares_of_numbers.py"\nlargest = 3\n')
    write()
    for argv in (["run", "--config", "below/mine.toml"], ["study", "below/mine.toml"]):
        assert main([*argv, "--figures", "figures"]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("mine: Squares of a few numbers") and "up to 4" in shown
    assert main(["figures", "below/mine.toml"]) == 0
    write(never=NEVER)
    assert main(["figures", "squares_of_numbers.py"]) == 0  # all that was run of it
    assert "study-mine.png" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('study = "squares_of_numbers.py"\nlargset = 3', "unknown key 'largset': did you mean largest?"),
        ('study = "squares_of_numbers.py"\ndata = "digits"', "takes none, as its collect has no parameter data"),
        ('study = "nowhere.py"', "got 'nowhere.py', allowed: a Python file that exists"),
        ('study = "squares_of_numbers"', "unknown study 'squares_of_numbers'"),
    ],
)
def test_settings_that_are_wrong_are_answered(write, tmp_path, capsys, text, answer):
    (tmp_path / "mine.toml").write_text(text)
    write()
    assert answer in refused(["run", "--config", "mine.toml"], capsys)


def test_a_file_without_a_study_has_no_figure(write, tmp_path, capsys):
    (tmp_path / "mine.toml").write_text("seed = 3")
    assert "mine.toml: there is no key study" in refused(["figures", "mine.toml"], capsys)


def test_data_that_nobody_takes_are_refused(write, capsys):
    said = refused(["study", write(), "--data", "digits"], capsys)
    assert "--data: squares-of-numbers would ignore it, as collect has no parameter data" in said
    seeded = write("with_a_seed.py", take=("collect(quick, options)", "collect(quick, seed, options)"))
    assert main(["study", "squares_of_numbers.py", seeded, "--seed", "3"]) == 0
    shown = capsys.readouterr().out
    assert "--seed: ignored by squares-of-numbers, whose collect has no parameter seed" in shown
    assert "squares-of-numbers: 0 s, seed 0" in shown and "with-a-seed: 0 s, seed 3" in shown


# --- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        ("collect(quick, options)", "collect(quick, seeds, options)", "collect takes 'seeds', allowed: some of "),
        ("class Options(NamedTuple)", "class Choices(NamedTuple)", "allowed: a class Options and a parameter options"),
        ("collect(quick, options)", "collect(quick)", "allowed: a class Options and a parameter options"),
        ("@setting\nclass Options(NamedTuple)", "class Options", "Options is no NamedTuple"),
    ],
)  # fmt: skip
def test_what_a_file_lacks_is_said_before_measuring(write, capsys, old, new, answer):
    file = write(change=(old, new), never=NEVER)
    assert answer in refused(["study", file], capsys)


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        ("def report(squares)", "def report(square)", "collect returned 'squares', report takes a dict with 'square'"),
        ('return {"squares": [n * n for n in range(2 if quick else options.largest)]}', "return [0, 1]",
         "collect returned a list, report takes a dict with 'squares'"),
        ("[(str(n), str(s))", "[(str(n),)", "table 'Squares': got a row with 1 cells, ('0',), allowed: 2 strings"),
        ("[(str(n), str(s))", "[(str(n), 1.0 * s)", "'Squares': got a row with a float (0.0), allowed: 2 strings"),
        ("[b > a for", "['hold' for", "statement 'grow': trial: got 'hold', allowed: a bool, a Trial, or one of"),
        ("        return figure", "        return figure, axes", "draw returned a tuple, allowed: a figure alone"),
        ("    return Study(", "    return dict, (", "report returned a tuple, allowed: a Study"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_said_and_the_record_written(write, tmp_path, capsys, old, new, answer):
    file = write(change=(old, new))
    assert answer in refused(["study", file, "--figures", "figures"], capsys)
    assert (tmp_path / RECORD).is_file()


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

    folders = [ROOT / "theory" / "studies" / subject for subject in SUBJECTS]
    files = {path.stem.replace("_", "-") for folder in folders for path in folder.glob("*.py")}
    assert set(STUDIES) == files and all(STUDIES.values())
