"""The lectures as one course: their form, their sheets of exercises, the index with its times, and the sliders."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from conftest import ROOT, run_group

pytest.importorskip("jupytext")
sys.path.insert(0, str(ROOT / "notebooks"))

import sheets  # noqa: E402
import times  # noqa: E402

from theory.measure import mean_interval  # noqa: E402
from theory.plots import explore, lecture, new_figure  # noqa: E402

PATHS = sheets.lectures()
INDEX = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
CHEAPEST = ("10", "12")  # with 02 and 09, which run below without Jupyter; `make sheets ARGS=--run` runs all
every_lecture = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])


def code(cells) -> list[str]:
    return [cell.source for cell in cells if cell.cell_type == "code"]


# --- one course -----------------------------------------------------------------------------------------------------


@every_lecture
def test_every_lecture_has_the_parts_of_a_lecture(path):
    text = path.read_text(encoding="utf-8")
    assert f"**Lecture {int(path.name[:2])}.**" in text
    for part in (
        "What you will learn",
        "| symbol | meaning |",
        "Running all of it: [measured](README.md)",
        "from theory.plots.lecture import ",
        "begin_lecture()",
    ):
        assert part in text, part
    sections = re.findall(r"^## (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    assert sections[-2:] == ["What to remember", "Exercises"]
    found = sheets.groups(sheets.read(path).exercises)
    assert 3 <= len(found) <= 5
    assert [heading.split(":")[0] for heading, _ in found] == [f"Exercise {k + 1}" for k in range(len(found))]
    assert "delete the solutions and write in their place" in text


def test_links_lead_somewhere():
    for page in (ROOT / "notebooks").glob("*.md"):
        prose = re.sub(r"^```\{code-cell.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
            announced = re.search(
                rf"^\| \[\d+ .*\]\({re.escape(target)}\)", INDEX, re.MULTILINE
            )  # as a row of the index
            assert "://" in target or announced or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_numbers_of_lectures_in_links_are_right():
    for path in [*PATHS, ROOT / "notebooks" / "notation.md"]:
        for number, target in re.findall(r"\[lecture (\d+)\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
            assert int(target[:2]) == int(number), f"{path.name} calls {target} lecture {number}"


@every_lecture
def test_the_index_has_the_lecture_its_title_and_the_number_of_its_exercises(path):
    read = sheets.read(path)
    (row,) = re.findall(rf"^\| \[(.+?)\]\({path.name}\) \|(.*)$", INDEX, re.MULTILINE)
    assert row[0] == f"{int(path.name[:2])} {read.title}"
    cells = [cell.strip() for cell in row[1].split("|")]
    assert len(cells) == 7 and cells[3] == str(len(sheets.groups(read.exercises)))


def test_times_are_written_into_the_row_of_the_lecture_alone():
    text = "| [1 One](01-one.md) | a | | | 4 | | |\n| [2 Two](02-two.md) | b | | | 3 | old | old |\n"
    made = times.record(text, ROOT / "notebooks" / "02-two.md", times.Taken(80.2, 61.0), times.Taken(9.9, 8.0))
    assert made == text.replace("| old | old |", "| 80 s (61 s) | 10 s (8 s) |")
    with pytest.raises(SystemExit, match="no row"):
        times.record(text, ROOT / "notebooks" / "03-three.md", times.Taken(1, 1), times.Taken(1, 1))


# --- sheets ---------------------------------------------------------------------------------------------------------


@every_lecture
def test_every_exercise_has_a_solution_and_a_cell_that_checks_it(path):
    for heading, cells in sheets.groups(sheets.read(path).exercises):
        solution, *checks = cells
        assert sheets.is_solution(solution), heading
        assert checks and not any(map(sheets.is_solution, checks)), heading
        assert any("assert" in check.source for check in checks), heading


@every_lecture
def test_a_sheet_of_exercises_shows_no_solution_and_cannot_pass(path):
    read = sheets.read(path)
    blank = sheets.sheet(read, solutions=False)
    known = set()  # what is defined in the sheet before the exercise
    exercises = code(read.exercises)
    for source in code(blank.cells)[: -len(exercises)]:
        known |= sheets.names(source).sets
    for heading, (solution, *checks) in sheets.groups(read.exercises):
        assert solution.source not in "\n".join(cell.source for cell in blank.cells)
        needs, own = set(), set()
        for check in checks:
            needs |= sheets.names(check.source).needs - own
            own |= sheets.names(check.source).sets
        assert needs - known, f"{heading}: the check would pass without a solution, as its names are defined before"
        known |= own


@every_lecture
def test_a_sheet_has_all_that_its_cells_need(path):
    solved, known, later = sheets.sheet(sheets.read(path), solutions=True), set(), set()
    for source in code(solved.cells):
        cell = sheets.names(source)
        later |= (inner := set().union(*cell.later.values()))  # must be there when the function is called
        assert cell.needs <= known | cell.sets | inner, f"{cell.needs - known - inner} in\n{source}"
        known |= cell.sets
    assert later <= known


@pytest.mark.parametrize("number", ["02", "09"])  # theirs need no kernels
def test_a_blank_sheet_fails_each_check_and_a_solved_one_passes(number):
    read = sheets.read(*sheets.lectures(number))
    solved, blank = ({"__name__": "sheet"} for _ in range(2))
    for cell in sheets.sheet(read, solutions=True).cells:
        if cell.cell_type == "code":
            exec(cell.source, solved)  # noqa: S102
    checks = {check.source for _, (_, *checks) in sheets.groups(read.exercises) for check in checks}
    failed = 0
    for cell in sheets.sheet(read, solutions=False).cells:
        if cell.cell_type == "code" and cell.source in checks:
            with pytest.raises(NameError):
                exec(cell.source, blank)  # noqa: S102
            failed += 1
        elif cell.cell_type == "code":
            exec(cell.source, blank)  # noqa: S102
    assert failed == len(checks) >= 3


def test_a_wrong_solution_fails():
    read = sheets.read(*sheets.lectures("02"))
    check = sheets.groups(read.exercises)[0][1][1].source
    sources = [*code(read.before), check]
    setup = [sources[i] for i in sheets.needed(sources, {len(sources) - 1}) if i < len(sources) - 1]
    wrong = "def second_moment_without(M2, B_D, B, n):\n    return B * M2 * (1 + (B - 1) / B_D)"  # with replacement
    with pytest.raises(AssertionError):
        exec("\n".join([*setup, wrong, check]), {"__name__": "sheet"})  # noqa: S102


def test_the_code_of_lectures_is_python_alone():
    for path in PATHS:  # so that a sheet runs as a script, too, and its names can be read
        assert not re.search(r"^\s*[%!]", "\n".join(code(sheets.read(path).notebook.cells)), re.MULTILINE), path.name


@pytest.mark.slow
@pytest.mark.parametrize("number", CHEAPEST)
def test_the_sheet_of_solutions_runs_by_itself(number, tmp_path):
    (path,) = sheets.lectures(number)
    script = tmp_path / "solutions.py"
    script.write_text("\n".join(code(sheets.sheet(sheets.read(path), solutions=True).cells)), encoding="utf-8")
    answer = run_group([sys.executable, script], timeout=300, cwd=tmp_path, env={"PYTHONPATH": ROOT})
    assert answer.returncode == 0, answer.stderr


def test_needed_cells_are_the_last_to_set_a_name_and_what_functions_look_up_later():
    cells = [
        "a = 1",
        "b = 1",
        "def f(x):\n    return x + b",
        "b = 2",
        "c = [a]",
        "c[0] = 5",
        "unused = 3",
        "print(f(c[0]))",
    ]
    assert sheets.needed(cells, {7}) == [0, 1, 2, 3, 4, 5, 7]


def test_sheets_are_written_for_the_lectures_that_are_named(tmp_path):
    import nbformat

    written = sheets.write(tmp_path, sheets.lectures("2"))
    assert [path.name for path in written] == [
        f"{kind}-02-mini-batches-and-gradient-diversity.ipynb" for kind in ("exercises", "solutions")
    ]
    for path in written:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        assert "jupytext" not in notebook.metadata  # nothing is paired with a sheet, so nothing is written beside it
        for target in re.findall(r"\]\(([^)#\s]+)\)", "\n".join(cell.source for cell in notebook.cells)):
            target = target.replace(sheets.FOLDER.name, sheets.NOTEBOOKS.name, 1)  # of the lecture that is converted
            found = (tmp_path / target).resolve()
            assert "://" in target or found.with_suffix(".md").exists() or found.exists(), target


# --- what the lectures draw with ------------------------------------------------------------------------------------


def test_marks_lines_and_bounds_look_as_the_lectures_say():
    figure, axes = new_figure()
    ax = axes[0, 0]
    samples = np.array([[1.0, 10.0], [3.0, 10.0]])
    lecture.exact([1, 2], [1, 2])(ax)
    lecture.bound([1, 2], [3, 4])(ax)
    lecture.marks([1, 2], [5.0, 6.0])(ax)
    lecture.measured([1, 2], samples, label="runs")(ax)
    law, limit, plain = ax.get_lines()[:3]
    assert (law.get_linestyle(), limit.get_linestyle(), plain.get_linestyle()) == ("-", "--", "None")
    assert plain.get_marker() == lecture.MARKS[0]
    data, _, (bars,) = ax.containers[0]
    half = mean_interval(samples[:, 0], 0.99).half
    assert data.get_ydata().tolist() == [2.0, 10.0]
    assert np.allclose(bars.get_segments()[0][:, 1], [2 - half, 2 + half])


class Screen:
    """Stands for a notebook: keeps what is displayed and what is displayed again in its place."""

    def __init__(self):
        self.shown, self.updates = [], []

    def display(self, *things, display_id=False):
        self.shown += things
        return self if display_id else None

    def update(self, thing):
        self.updates.append(thing.data)


@pytest.fixture
def screen(monkeypatch):
    pytest.importorskip("IPython")
    found = Screen()
    monkeypatch.setattr("IPython.display.display", found.display)
    return found


def draw(axes, s, p=1):
    axes.plot([0, s], [0, p])


def test_without_ipywidgets_there_is_the_picture_alone(screen, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)  # import ipywidgets then raises ImportError
    explore(draw, s=[1, 2, 4], live=True)
    (picture,) = screen.shown
    assert picture.data.startswith(b"\x89PNG")


def test_where_nobody_looks_there_is_the_picture_alone(screen, monkeypatch):
    for name in ("JPY_SESSION_NAME", "VSCODE_PID", "VSCODE_CWD"):
        monkeypatch.delenv(name, raising=False)
    explore(draw, s=[1, 2, 4])
    assert len(screen.shown) == 1


def test_a_slider_draws_the_picture_again_in_its_place(screen, monkeypatch):
    pytest.importorskip("ipywidgets")
    monkeypatch.setenv("JPY_SESSION_NAME", "04-sparsify-and-quantize.md")
    explore(draw, s=[1, 2, 4], p=[3, 5], start={"p": 3})
    s, p, picture = screen.shown
    assert (s.description, s.value, p.description, p.value) == ("s", 2, "p", 3)
    s.value = 4
    p.value = 5
    p.value, s.value = 3, 2
    assert len(screen.updates) == 4
    assert screen.updates[0] == screen.updates[2] != screen.updates[1]  # s = 4, p = 3 twice; the axes tell them apart
    assert screen.updates[3] == picture.data


def test_explore_refuses_settings_that_no_slider_has():
    with pytest.raises(ValueError, match="at least one argument"):
        explore(draw)
    with pytest.raises(ValueError, match=r"s=3, allowed: one of \[1, 2\]"):
        explore(draw, s=[1, 2], start={"s": 3})
    with pytest.raises(ValueError, match="only s can be set"):
        explore(draw, s=[1, 2], start={"q": 3})
