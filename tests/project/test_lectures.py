"""The lectures as one course: their form, their sheets of exercises, the index with its times, and the sliders."""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
import types
import warnings

import numpy as np
import pytest
from conftest import ROOT, run_group
from forked import run_blocks, run_forked

pytest.importorskip("jupytext")
sys.path.insert(0, str(ROOT / "notebooks"))

import book  # noqa: E402
import pictures  # noqa: E402
import prepare  # noqa: E402
import sheets  # noqa: E402
import times  # noqa: E402

from theory.measure import mean_interval  # noqa: E402
from theory.plots import explore, lecture, lecture_curves, new_figure  # noqa: E402
from theory.plots.notebook import ExplainAsserts  # noqa: E402

PATHS = sheets.lectures()
INDEX = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
CHEAPEST = ("11", "16")  # with 02 and 09, which run below without Jupyter; `make sheets ARGS=--run` runs all
every_lecture = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])


def code(cells) -> list[str]:
    return [cell.source for cell in cells if cell.cell_type == "code"]


# --- one course -----------------------------------------------------------------------------------------------------


@every_lecture
def test_every_lecture_has_the_parts_of_a_lecture(path):
    text = path.read_text(encoding="utf-8")
    assert f"**Lecture {int(path.name[:2])}.**" in text
    assert re.search("After this lecture you can|What you will learn", text)
    for part in (
        "| symbol | meaning |",
        "Running all of it: [measured](README.md)",
        "from theory.plots.lecture import ",
        "begin_lecture()",
    ):
        assert part in text, part
    sections = re.findall(r"^## (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    assert sections[-2:] == ["What to remember", "Exercises"]
    found = sheets.groups(sheets.read(path).exercises)
    assert 3 <= len(found) <= 7
    assert [heading.split(":")[0] for heading, _ in found] == [f"Exercise {k + 1}" for k in range(len(found))]
    assert "delete a solution, whose first line names what is checked, and write in its place" in text


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


def test_a_sheet_in_which_somebody_wrote_is_left_alone(tmp_path, capsys):
    import nbformat

    paths = sheets.lectures("2")
    exercises, solutions = sheets.write(tmp_path, paths)
    assert sheets.write(tmp_path, paths, {1}) == [exercises, solutions]  # nobody wrote in them
    assert capsys.readouterr().out == ""
    mine = nbformat.read(exercises, as_version=4)
    mine.cells[-1].source = "# mine"
    nbformat.write(mine, exercises)
    assert sheets.write(tmp_path, paths) == [solutions] and "left alone" in capsys.readouterr().out
    assert nbformat.read(exercises, as_version=4).cells[-1].source == "# mine"


def test_a_lecture_that_does_not_exist_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        sheets.main("44")
    assert stop.value.code == 2 and "lecture: got 44, allowed: 01, 02" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("number", CHEAPEST)
def test_the_sheet_of_solutions_runs_by_itself(number, tmp_path):
    (path,) = sheets.lectures(number)
    cells = [(path.stem, source) for source in code(sheets.sheet(sheets.read(path), solutions=True).cells)]
    run_forked(run_blocks, cells, folder=tmp_path, cwd=tmp_path, timeout=300)


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


def test_exercises_that_are_no_numbers_are_refused(capsys):
    with pytest.raises(SystemExit):
        sheets.main("04", "--only", "1-3")
    assert "--only: got 1-3, allowed: numbers" in capsys.readouterr().err


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
            found = (path.parent / target).resolve()
            assert "://" in target or found.with_suffix(".md").exists() or found.exists(), target


def test_a_sheet_for_the_public_has_no_way_to_the_solutions(tmp_path):
    (path,) = sheets.write(tmp_path, sheets.lectures("2"), public=True)
    text = path.read_text(encoding="utf-8")
    assert not (tmp_path / "instructor").exists() and "](" not in text


@every_lecture
def test_points_can_be_read_and_what_asks_for_a_proof_has_one(path):
    read = sheets.read(path)
    text = "\n".join(cell.source for cell in read.exercises if cell.cell_type == "markdown")
    worth = sheets.points(read)
    assert sum(one.name.startswith("exercise") for one in worth) == len(sheets.groups(read.exercises))
    assert len(re.findall(r"^\*\d+ point", text, re.MULTILINE)) in (0, len(sheets.WORTH.findall(text)))
    assert sum(one.proof > 0 for one in worth) <= len(sheets.PROOF.findall(text))


def test_a_sheet_is_printed(tmp_path, monkeypatch):
    import paper

    (path,) = sheets.write(tmp_path, sheets.lectures("2"), {3}, public=True)
    made = paper.printed(path)
    text = path.with_suffix(".html").read_text(encoding="utf-8")
    assert "<math" in text and "# Write here: most" in text and not re.search(r'(?:src|href)="https?:', text)
    assert made[-1].startswith("no PDF") or path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    monkeypatch.setattr(paper, "BROWSERS", ("there-is-no-such-browser",))
    assert paper.printed(path)[-1].startswith("no PDF, as none of there-is-no-such-browser")


def test_exercises_can_be_chosen_and_a_proof_has_a_cell():
    read = sheets.read(*sheets.lectures("4"))
    blank, solved = (sheets.sheet(read, solutions=given, only={3}) for given in (False, True))
    for made in (blank, solved):
        headings = [cell.source.splitlines()[0] for cell in made.cells if cell.source.startswith("### ")]
        assert headings == ["### Exercise 3: TernGrad's worst vector"]
        assert not any("<details>" in cell.source for cell in made.cells)
    (question,) = [cell.source for cell in blank.cells if cell.source.startswith("**Proof.**")]
    (answer,) = [cell.source for cell in solved.cells if cell.source.startswith("**Proof.**")]
    assert question == "**Proof.** *Write it here.*" and "Cauchy" in answer
    with pytest.raises(SystemExit, match="no exercise 9"):
        sheets.sheet(read, solutions=True, only={9})
    with pytest.raises(SystemExit, match="has no exercise 9$"):  # and is not written without it
        sheets.sheet(read, solutions=True, only={3, 9})


# --- notebooks to work in -------------------------------------------------------------------------------------------


@every_lecture
def test_lectures_are_plain_markdown(path):
    """JupyterLab, Visual Studio Code and code hosts know no directives; and a cell that draws does nothing else."""
    read = sheets.read(path)
    for cell in read.notebook.cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"^```.*?^```$", "", cell.source, flags=re.MULTILINE | re.DOTALL)
            assert not re.search(r"^`{3,}\{|^:{3,}|\{[\w:]+\}`|^\([\w-]+\)=$", cell.source, re.MULTILINE), text
        else:
            assert "matplotlib" not in cell.source and "plt." not in cell.source
            drawn = re.findall(r"^(?:draw|explore)\(", cell.source, re.MULTILINE)
            assert not drawn or cell.source.startswith(drawn[0]), cell.source
            assert max(map(len, cell.source.splitlines())) <= 90, "JupyterLab shows 90 characters of a line of code"
            if drawn:  # folded, so that a picture and its text fit a screen
                assert "hide-input" in cell.metadata.get("tags", []), cell.source
            if drawn == ["draw("]:
                (call,) = ast.parse(cell.source).body
                assert "title" in {keyword.arg for keyword in call.value.keywords}, "a figure's title is what it says"


def test_notebooks_lead_to_notebooks_and_fold_their_solutions():
    made = prepare.convert(*sheets.lectures("4"))
    text = "\n".join(cell.source for cell in made.cells if cell.cell_type == "markdown")
    assert "](03-sgd-rates.ipynb)" in text and "](index.ipynb)" in text
    assert not re.search(r"\]\((?!\.\./docs/)[\w-]+\.md\)", text) and "jupytext" not in made.metadata
    solutions = [cell for cell in made.cells if "solution" in cell.metadata.get("tags", [])]
    assert len(solutions) == 6 and all(cell.metadata["jupyter"] == {"source_hidden": True} for cell in solutions)
    assert all(cell.source.startswith("# Solution") for cell in solutions)
    assert solutions[0].source.startswith("# Solution: saving, least_at, most_at, gaussian\n")  # what the check uses


@every_lecture
def test_a_notebook_checks_the_quiz_and_does_not_show_its_answers(path, capsys):
    answers = prepare.quiz_answers(path.read_text(encoding="utf-8"))
    assert list(answers) == [1, 2, 3, 4, 5] and set(answers.values()) <= set("abc")
    cells, space = prepare.convert(path, quiz=True).cells, {}
    (place,) = [k for k, cell in enumerate(cells) if cell.source.startswith("def quiz(")]
    assert "### Quiz" in cells[place - 1].source and cells[place - 1].source.endswith("</details>")
    assert cells[place + 1].source == 'quiz({1: "", 2: "", 3: "", 4: "", 5: ""})  # your letters'
    assert cells[place - 1].source.endswith("</details>") and "## Exercises" in cells[place + 2].source
    exec(cells[place].source, space)  # noqa: S102
    for letter in "abc":
        space["quiz"](dict.fromkeys(answers, f"({letter})"))
        said = [line.partition(": ")[2] == "right" for line in capsys.readouterr().out.splitlines()]
        assert said == [right == letter for right in answers.values()]


def test_what_somebody_wrote_is_never_replaced(tmp_path, monkeypatch):
    import nbformat

    pages, folder = tmp_path / "pages", tmp_path / "lectures"
    pages.mkdir()
    page = pages / "note.md"
    page.write_text("# A page\n", encoding="utf-8")
    monkeypatch.setattr(prepare, "pages", lambda: [page])
    source = lambda: nbformat.read(folder / "note.ipynb", as_version=4).cells[0].source  # noqa: E731
    assert prepare.write(folder) == [] and source() == "# A page"
    page.write_text("# A page, changed\n", encoding="utf-8")
    assert prepare.write(folder) == [] and source() == "# A page, changed"  # nobody had written in it
    notebook = nbformat.read(folder / "note.ipynb", as_version=4)
    notebook.cells[0].source = "mine"
    nbformat.write(notebook, folder / "note.ipynb")
    assert prepare.write(folder) == [] and source() == "mine"  # the page is as it was
    page.write_text("# A page, changed again\n", encoding="utf-8")
    (said,) = prepare.write(folder)
    assert "you wrote in it" in said and source() == "mine"
    prepare.write(folder, fresh=True)
    assert source() == "# A page, changed again" and "mine" in (folder / "note.mine.ipynb").read_text(encoding="utf-8")


# --- on a code host, and in print -----------------------------------------------------------------------------------


@every_lecture
def test_a_code_host_shows_the_main_pictures_of_a_lecture(path):
    import jupytext

    text, named = path.read_text(encoding="utf-8"), list(pictures.named(jupytext.read(path).cells))
    found = prepare.PICTURE.findall(text)
    assert 2 <= len(found) <= 4 and [name for _, name in found] == [name for name, _ in named]
    assert text.count("figures/lectures/") == len(found), "a picture has a line of its own"
    for (said, name), (_, cell) in zip(found, named, strict=True):
        assert len(said) >= 40, f"{name}: say what is to be seen"
        assert name.startswith(path.name[:3]) and cell.source.startswith(("draw(", "explore("))
        data = (pictures.FOLDER / f"{name}.png").read_bytes()
        assert data.startswith(b"\x89PNG") and len(data) < 60_000
    shown = [*prepare.read_page(path).cells, *sheets.read(path).before]  # where the cell shows it
    assert "figures/lectures/" not in "\n".join(cell.source for cell in shown)


def test_every_picture_of_a_lecture_is_shown():
    there = {path.stem for path in pictures.FOLDER.glob("*")}
    assert there == {name for path in PATHS for _, name in prepare.PICTURE.findall(path.read_text(encoding="utf-8"))}


def test_a_picture_is_that_of_the_last_cell_above_its_line(tmp_path):
    import base64
    import io

    from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (4, 3), "red").save(file, "PNG")
    shown = new_output("display_data", {"image/png": base64.b64encode(file.getvalue()).decode()})
    line = new_markdown_cell("![a red field](../figures/lectures/99-red.png)\n\nWords.")
    (written,) = pictures.write([new_code_cell("1"), new_code_cell("draw()", outputs=[shown]), line], tmp_path)
    assert Image.open(written).convert("RGB").getpixel((0, 0)) == (255, 0, 0)
    with pytest.raises(ValueError, match="99-red: the cell above shows no picture"):
        pictures.write([new_code_cell("draw()", outputs=[shown]), new_code_cell("1"), line], tmp_path)


def test_a_lecture_in_print_ends_with_its_solutions():
    made, sections = book.numbered(book.body(prepare.convert(*sheets.lectures("4")).cells, links=True), "lecture-04")
    before, after = re.sub(r"</?span[^>]*>", "", made).split(">Solutions</h2>")
    assert "saving(v)" in before and "def saving" not in before and "def saving" in after
    assert after.count("<h4>Exercise ") == 6 and "Cauchy" in after and "<details>" not in made
    assert 'href="#lecture-03"' in made and ".ipynb" not in made and "../docs" not in made
    assert sections[0] == ("lecture-04-1", "Example: a vector of eight numbers") and 'id="lecture-04-1"' in made
    assert "draw(" not in made and book.ranges([1, 2, 3, 5]) == "1–3, 5"


@pytest.mark.full
def test_the_course_is_printed(tmp_path):
    pypdf = pytest.importorskip("pypdf", reason="book: pypdf is not installed (make test-full installs it)")
    if not any(map(shutil.which, book.BROWSERS)):
        pytest.skip(f"book: none of {', '.join(book.BROWSERS)} is on the PATH (Debian: apt-get install chromium)")
    assert book.main("--out", str(tmp_path)) == 0
    assert len(list(tmp_path.glob("[0-9][0-9]-*.pdf"))) == len(PATHS)
    printed = pypdf.PdfReader(tmp_path / "lectures.pdf")
    pages = [page.extract_text() for page in printed.pages]
    assert len(pages) > 100 and sum(len(page.images) for page in printed.pages) > 60
    contents = "\n".join(pages[1:8])
    for path in PATHS:  # the page that the contents name has the lecture
        number, title = int(path.name[:2]), re.escape(sheets.read(path).title)
        (place,) = re.findall(rf"^{number} {title}\s+(\d+)$", contents, re.MULTILINE)
        assert f"Lecture {number}." in pages[int(place) - 1]


def test_launch_links_need_an_address(monkeypatch):
    import colab

    monkeypatch.setattr(colab, "repository", lambda: None)
    assert colab.launch_links("04-sparsify-and-quantize") == ""
    monkeypatch.setattr(colab, "repository", lambda: "https://github.com/a/b.git")
    assert "github/a/b/blob/launch/04-x.ipynb" in colab.launch_links("04-x") and "gh/a/b/main?" in colab.launch_links(
        "04-x"
    )


def test_the_notebook_for_colab_is_lecture_4():
    import colab

    assert colab.TARGET.read_text(encoding="utf-8") == colab.notebook(), "python notebooks/colab.py writes it again"


def test_colab_installs_the_package_where_it_is_not(tmp_path):
    """Its first cell, in an environment that has everything but this package."""
    import importlib.util
    import sysconfig

    import colab

    if shutil.which("git") is None or importlib.util.find_spec("hatchling") is None:
        pytest.skip("Colab: git or hatchling is not installed")
    run_group([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], timeout=120)
    python = tmp_path / "venv" / "bin" / "python"
    (there,) = (tmp_path / "venv" / "lib").glob("python3*/site-packages")
    (there / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")  # does not follow its .pth files
    script = tmp_path / "cell.py"
    script.write_text(f"{colab.INSTALL}\nimport theory\nprint(theory.__file__)\n", encoding="utf-8")
    environment = {"THEORY_REPOSITORY": f"file://{ROOT}", "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_DEPS": "1"}
    environment |= {"PYTHONPATH": None, "PIP_TARGET": str(there), "GIT_CONFIG_GLOBAL": os.devnull}
    answer = run_group([python, script], timeout=300, env=environment, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert str(there) in answer.stdout


def test_the_newcomer_does_what_the_pages_say():
    from benchmarks import newcomer

    todo, left_out = newcomer.plan([1, 4])
    names = [name for name, _ in todo]
    assert names[0] == "make run" and names[-2:] == ["lecture 1", "lecture 4"]
    assert 'make lectures ARGS="--version"' in names and any(name.startswith("README.md, Python") for name in names)
    assert all(reason for _, reason in left_out)


def test_the_newcomer_measures_silence():
    from benchmarks import newcomer

    code, said, silence, before = newcomer.watched(["sh", "-c", "echo one; sleep 0.4; echo two >&2; sleep 0.8; exit 3"])
    assert (code, said, before) == (3, "one\ntwo\n", "two") and 0.7 < silence < 5.0
    assert newcomer.watched(["sleep", "0.3"])[3] == "the start"


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
    assert plain.get_marker() == lecture_curves.MARKS[0]
    data, _, (bars,) = ax.containers[0]
    half = mean_interval(samples[:, 0], 0.99).half
    assert data.get_ydata().tolist() == [2.0, 10.0]
    assert np.allclose(bars.get_segments()[0][:, 1], [2 - half, 2 + half])


def test_a_panel_is_drawn_as_it_is_said():
    said = lecture.panel(
        [lecture.exact([1, 100], [0.02, 2], label="law"), [lecture.hline(1, "one", dashed=True)]],
        lecture.vline(10), lecture.dot(10, 1), lecture.bars({"a": [1, 2], "b": [2, 1]}),
        x="n", y="f", log="xy", title="t", xlim=(1, 200), xticks={1: "one", 100: "many"}, legend="upper left",
    )  # fmt: skip
    ax = lecture.figure(said, lecture.panel(lecture.curve([0, 1], [0, 1]))).axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title(), ax.get_xscale()) == ("n", "f", "t", "log")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["law", "one", "a", "b"]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["one", "many"]
    assert ax.yaxis.get_major_formatter()(0.1) == "0.1"  # not a power of ten
    with pytest.raises(ValueError, match="log"):
        lecture.panel(log="z")


def test_a_warning_is_one_line_without_a_path(capsys, monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    lecture.begin_lecture()
    for text in ("steps are\n  long", "steps are longer"):
        warnings.showwarning(UserWarning(text), UserWarning, "/a/path.py", 3)
    assert capsys.readouterr().out == "UserWarning: steps are long\n"


def test_a_legend_has_the_order_of_the_curves():
    down, up = lecture.exact([1, 2], [9, 1], 0, "down"), lecture.measured([1, 2], [[1, 8], [1, 8.1]], 1, "up")
    said = lecture.panel(lecture.vline(1.5, "at"), down, lecture.hline(5, "level"), up, xlim=(0, 3))
    (ax,) = lecture.figure(said, title="one " * 40).axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["up", "level", "down", "at"]
    assert ax.figure.get_suptitle().count("\n") >= 1  # a long title has lines
    (ax,) = lecture.figure(lecture.panel(down, up, lecture.vline(1.5, "at"), xlim=(0, 1.5))).axes  # what is seen
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["down", "up", "at"]


def failed(source: str, **names) -> str:
    """What a cell of a lecture says when its check fails."""
    tree = ast.fix_missing_locations(ExplainAsserts().visit(ast.parse(source)))
    with pytest.raises(AssertionError) as error:
        exec(compile(tree, "a cell", "exec"), names)  # noqa: S102
    return str(error.value)


def test_a_failed_check_states_the_expected_and_the_actual_value():
    said = failed("assert abs(saving(v) - 1) < 1e-12 and never()", saving=sum, v=[1, 2])
    assert said == "expected: saving(v) = 1, within 1e-12\nactual:   saving(v) = 3"
    said = failed("def check():\n    assert np.allclose(mine(2), 4.0), 'look'\ncheck()", np=np, mine=np.ones)
    assert said == "look\nexpected: mine(2) close to 4.0\nactual:   mine(2) = [1. 1.]"
    said = failed("assert 0 < low(1) < f.high", low=lambda x: 2.5, f=types.SimpleNamespace(high=2))
    assert said == "expected: 0 < low(1) < f.high\nactual:   low(1) = 2.5\nactual:   f.high = 2"
    said = failed("assert all(x > y for x in found)", found=[1], y=2)
    assert said == "expected: all((x > y for x in found))"
    assert failed("assert abs(f(2) - 3) < 1", f=lambda x: None) == "f(2) is None: is `return` missing?"
    calls = iter(range(9))
    tree = ast.parse("for k in range(3):\n    assert next(calls) == k and (np.arange(2) == [0, 1]).all()")
    exec(compile(ast.fix_missing_locations(ExplainAsserts().visit(tree)), "a cell", "exec"), {"calls": calls, "np": np})
    assert next(calls) == 3  # nothing is evaluated twice


@every_lecture
def test_every_check_of_a_lecture_can_be_explained(path):
    for source in code(sheets.read(path).notebook.cells):
        compile(ast.fix_missing_locations(ExplainAsserts().visit(ast.parse(source))), path.name, "exec")


class Shell:
    """Stands for IPython's in a notebook: remembers what it calls when a cell has ended."""

    def __init__(self):
        self.events, self.kernel, self.ends = self, True, []

    def register(self, when, function):
        assert when == "post_run_cell"
        self.ends.append(function)

    def unregister(self, _, function):
        self.ends.remove(function)


def test_compiling_is_one_line_in_a_notebook_until_the_cell_ends(monkeypatch):
    pytest.importorskip("IPython")
    from theory.core.compiling import Announcer

    monkeypatch.setenv("THEORY_PROGRESS", "1")
    seen, shell = [], Shell()
    handle = types.SimpleNamespace(update=lambda data, raw: seen.append(data))
    monkeypatch.setattr("IPython.display.display", lambda data, **_: seen.append(data) or handle)
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    announcer = Announcer()
    for what in ("QSGD", "QSGD", "TopK"):
        announcer.kernel(what, "<here>", True)
    assert "compiling QSGD, TopK: 3 kernels" in seen[-1]["text/plain"] and "&lt;here&gt;" in seen[-1]["text/html"]
    (end,) = shell.ends
    end(None)
    assert seen[-1] == {"text/plain": "", "text/html": ""} and shell.ends == []


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
