"""Exercise sheets and solutions, made from the lectures, so that they cannot drift from them.

python notebooks/sheets.py                # all, into lectures/sheets/; solutions into instructor/ there
python notebooks/sheets.py 04 07          # these two
python notebooks/sheets.py 04 --only 1,3  # two exercises of one
python notebooks/sheets.py --public       # exercises alone, without links to the lectures, which have the solutions
python notebooks/sheets.py --paper        # also as HTML and, where Chromium is installed, as PDF: to be printed
python notebooks/sheets.py --run          # and runs every sheet of solutions, each by itself

A sheet in which somebody wrote is never replaced.

A lecture's exercises begin at the heading "## Exercises"; a cell with the tag `solution` holds a solution, and
`<details>` after the question a proof. The sheet of exercises has empty cells in their places, and the cell that checks
a solution. Both sheets begin with those cells of the lecture that define what the exercises use, found by their names,
so a sheet runs by itself.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import itertools
import os
import re
import sys
import tempfile
import time
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

from prepare import FOLDER, NOTEBOOKS, QUIET, SOLUTION, read_page, with_links, words
from prepare import write as write_lectures

HEADING, EXERCISE = "## Exercises", "### Exercise "
QUESTION = re.compile(r"^### (Exercise|Problem) (\d+): (.*)$", re.MULTILINE)  # a problem is a proof alone
WORTH = re.compile(r"^\*(\d+) points?, (easy|medium|hard)((?:, \w+)*)\*$", re.MULTILINE)
PROOF = re.compile(r"<details>\s*<summary>(.*?)</summary>\s*(.*?)\s*</details>", re.DOTALL)


def lectures(*numbers: str) -> list[Path]:
    """The lectures in teaching order, or those of these numbers."""
    found = sorted(NOTEBOOKS.glob("[0-9][0-9]-*.md"))
    return [path for path in found if not numbers or path.name[:2] in {f"{int(number):02d}" for number in numbers}]


# --- what a cell defines, and what it needs -------------------------------------------------------------------------


class Names(NamedTuple):
    """The global names of a cell: those it sets, those it needs from before, those its functions need when called."""

    sets: set[str]
    needs: set[str]
    later: dict[str, set[str]]


class _Reader(ast.NodeVisitor):
    """Goes through a cell in the order in which it runs."""

    def __init__(self):
        self.sets: set[str] = set()
        self.needs: set[str] = set()
        self.later: dict[str, set[str]] = {}
        self.inner: set[str] = set()  # what bodies of functions look up when they are called

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            if node.id not in self.sets:
                self.needs.add(node.id)
        else:
            self.sets.add(node.id)

    def visit_Assign(self, node):
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)
            self.changed(target)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Lambda):
            self.later[node.targets[0].id] = free(node.value)

    def visit_AugAssign(self, node):
        self.visit(
            ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
            if isinstance(node.target, ast.Name)
            else node.target
        )
        self.visit(node.value)
        self.changed(node.target)
        if isinstance(node.target, ast.Name):
            self.sets.add(node.target.id)

    def changed(self, target):
        """x[i] = ... and x.a = ... change x: who needs x later needs this cell, too."""
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
            if isinstance(target, ast.Name):
                self.sets.add(target.id)

    def visit_For(self, node):
        for part in (node.iter, node.target, *node.body, *node.orelse):
            self.visit(part)

    def visit_NamedExpr(self, node):
        self.visit(node.value)
        self.visit(node.target)

    def visit_comprehension_like(self, node):
        for name in free(node) - self.sets:
            self.needs.add(name)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_like

    def visit_Lambda(self, node):
        self.inner |= free(node)

    def visit_FunctionDef(self, node):
        for part in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)
        self.later[node.name] = free(node)
        self.inner |= self.later[node.name]
        self.sets.add(node.name)

    def visit_ClassDef(self, node):
        for part in (*node.decorator_list, *node.bases):
            self.visit(part)
        self.later[node.name] = free(node)
        self.inner |= self.later[node.name]
        self.sets.add(node.name)

    def visit_Import(self, node):
        self.sets |= imported(node)

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node):
        if node.name:
            self.sets.add(node.name)
        self.generic_visit(node)


def imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    """Names that an import sets."""
    return {(alias.asname or alias.name).split(".")[0] for alias in node.names}


def free(node: ast.AST) -> set[str]:
    """Names that a function or a comprehension takes from outside."""
    loads, own = set(), set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            (loads if isinstance(part.ctx, ast.Load) else own).add(part.id)
        elif isinstance(part, ast.arg):
            own.add(part.arg)
        elif isinstance(part, ast.FunctionDef) and part is not node:
            own.add(part.name)
        elif isinstance(part, ast.Import | ast.ImportFrom):
            own |= imported(part)
        elif isinstance(part, ast.ExceptHandler) and part.name:
            own.add(part.name)
    return {name for name in loads - own if not hasattr(builtins, name)}


def names(source: str) -> Names:
    """What a cell sets and needs."""
    reader = _Reader()
    reader.visit(ast.parse(re.sub(r"(?m)^\s*[%!].*$", "", source)))  # lines for IPython or the shell have no names
    needs = {name for name in reader.needs | (reader.inner - reader.sets) if not hasattr(builtins, name)}
    return Names(reader.sets, needs, reader.later)


def needed(sources: list[str], wanted: set[int]) -> list[int]:
    """The cells without which these do not run: the last to set each name, and what they need in turn."""
    cells = [names(source) for source in sources]
    chosen, seen = set(wanted), set()
    todo = [(name, j) for j in wanted for name in cells[j].needs]
    while todo:
        name, j = todo.pop()
        if (name, j) in seen:
            continue
        seen.add((name, j))
        i = next((i for i in reversed(range(j)) if name in cells[i].sets), None)
        if i is None:
            continue
        # what a function takes from outside it looks up when it is called, so seen from cell j; and x[i] = ... in
        # cell i needs the x from before
        todo += [(inner, j) for inner in cells[i].later.get(name, ())]
        if i not in chosen:
            chosen.add(i)
            todo += [(inner, i) for inner in cells[i].needs]
    return sorted(chosen)


# --- the sheets -----------------------------------------------------------------------------------------------------


class Lecture(NamedTuple):
    """A lecture in two parts, its exercises being the second."""

    path: Path
    title: str
    notebook: object
    before: list
    exercises: list


def read(path: Path) -> Lecture:
    from nbformat.v4 import new_markdown_cell

    notebook = read_page(path)
    title = next(cell.source for cell in notebook.cells if cell.source.startswith("# ")).splitlines()[0][2:]
    before, after, ended = [], [], False
    for cell in notebook.cells:
        if cell.cell_type != "markdown" or ended:
            (after if after and not ended else before).append(cell)
            continue
        head, found, tail = f"\n{cell.source}".partition(f"\n{HEADING}\n") if not after else ("", True, cell.source)
        before.append(new_markdown_cell(head.strip()))
        if found:
            text, ended, _ = f"\n{tail}".partition("\n## ")  # another section may follow
            after.append(new_markdown_cell(text.strip()))
    if after:  # the introduction speaks of the lecture, so the sheet begins with the first exercise
        after[0].source = EXERCISE + after[0].source.partition(EXERCISE)[2]
    if not after:
        raise ValueError(f"{path.name} has no heading {HEADING!r}")
    return Lecture(path, title, notebook, before, after)


def is_solution(cell) -> bool:
    return cell.cell_type == "code" and SOLUTION in cell.metadata.get("tags", [])


def groups(cells: list) -> list[tuple[str, list]]:
    """Headings of the exercises, and the code cells of each."""
    found: list[tuple[str, list]] = []
    for cell in cells:
        if cell.cell_type == "code":
            found[-1][1].append(cell)
        else:
            found += [(line[4:], []) for line in cell.source.splitlines() if line.startswith(EXERCISE)]
    return found


class Points(NamedTuple):
    """What a question is worth: what its check gives, and what somebody gives who reads its proof; how hard it is."""

    name: str
    heading: str
    checked: int
    proof: int
    difficulty: str


def points(lecture: Lecture) -> list[Points]:
    """What the exercises and problems are worth, by the line below each heading: ``*4 points, medium, proof*``.

    Half of the points of an exercise, rounded down, are those of its proof if there is one, and all of a problem.  A
    question without the line has one point.
    """
    text = "\n".join(cell.source for cell in lecture.exercises if cell.cell_type == "markdown")
    begins, found = [*QUESTION.finditer(text)], []
    for begin, end in itertools.pairwise([*(one.start() for one in begins), len(text)]):
        heading, said = QUESTION.match(text, begin), WORTH.search(text, begin, end)
        whole, proof = int(said[1]) if said else 1, 0
        if said and "proof" in said[3]:
            proof = whole // 2 if heading[1] == "Exercise" else whole
        name, hard = f"{heading[1].lower()} {heading[2]}", said[2] if said else ""
        found.append(Points(name, heading[3], whole - proof, proof, hard))
    return found


def asked(solution, others: list) -> list[str]:
    """What a solution defines and the cells after it use, in the order of the solution."""
    used = set().union(*(names(cell.source).needs for cell in others))
    own = names(solution.source).sets & used
    return sorted(own, key=lambda name: re.search(rf"\b{name}\b", solution.source).start())


def chosen(cells: list, only: set[int]) -> list:
    """The cells of these exercises; of all of them if none is named."""
    found, number = [], 0
    for cell in cells:
        if cell.cell_type == "markdown" and cell.source.startswith(EXERCISE):
            number = int(re.match(r"\d+", cell.source[len(EXERCISE) :])[0])
        elif cell.cell_type == "markdown" and QUESTION.match(cell.source):
            number = 0  # a problem
        if not only or number in only:
            found.append(cell)
    return found


def prose(cell, links: str | None, solutions: bool) -> list:
    """The question, and a cell for a proof if there is one to write."""
    from nbformat.v4 import new_markdown_cell

    text = linked(cell.source, links)
    made = [new_markdown_cell(PROOF.sub("", text).strip())]
    for _, proof in PROOF.findall(text):
        made.append(new_markdown_cell(f"**Proof.** {proof}" if solutions else "**Proof.** *Write it here.*"))
    return made


def linked(text: str, links: str | None) -> str:
    """Text whose links to pages here begin with a path; without such links if there is none."""
    if links is None:
        return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)\s]*\)", r"\1", text)
    return with_links(text, links).replace("](../docs/", f"]({links}../docs/")


def sheet(
    lecture: Lecture, *, solutions: bool, only: frozenset[int] | set[int] = frozenset(), links: str | None = "../"
):
    """A notebook: what the exercises need from the lecture, and the exercises, with or without their solutions.

    ``links`` is the path from the sheet to the folder with the lectures' notebooks; None leaves links out.
    """
    from nbformat.v4 import new_markdown_cell, new_notebook

    asked_for = chosen(lecture.exercises, set(only))
    missing = [number for number in sorted(only) if not chosen(lecture.exercises, {number})]
    if missing:
        raise SystemExit(f"{lecture.path.name} has no exercise {', '.join(map(str, missing))}")
    code = [cell for cell in (*lecture.before, *lecture.exercises) if cell.cell_type == "code"]
    wanted = {i for i, cell in enumerate(code) if any(cell is other for other in asked_for)}
    setup = [code[i] for i in needed([cell.source for cell in code], wanted) if i not in wanted]
    kind = "Solutions" if solutions else "Exercises"
    way = (
        "Every solution is followed by the cell that checks it."
        if solutions
        else "Write each solution where it says so; the cell after it checks, and fails until you are there."
    )
    head = (
        f"# {kind}: {lecture.title}\n\nThese are the exercises of [lecture {int(lecture.path.name[:2])}]"
        f"({lecture.path.stem}.md), with the lecture's cells that they need. {way}\n\n"
        f"*Made from the lecture by `make sheets`. What you write here stays: a sheet in which somebody wrote is not "
        f"replaced.*"
    )
    cells = [new_markdown_cell(linked(head, links)), *map(deepcopy, setup), new_markdown_cell(HEADING)]
    blanks = {}
    for _, group in groups(asked_for):
        for k, cell in enumerate(group):
            if is_solution(cell):
                blanks[cell.id] = "# Write here: " + ", ".join(asked(cell, group[k + 1 :]))
    for cell in deepcopy(asked_for):
        if is_solution(cell):
            cell.metadata["tags"] = [tag for tag in cell.metadata["tags"] if not tag.startswith("hide")]
            if not solutions:
                cell.source = blanks[cell.id]
        cells += prose(cell, links, solutions) if cell.cell_type == "markdown" else [cell]
    metadata = {key: value for key, value in lecture.notebook.metadata.items() if key != "jupytext"}
    return new_notebook(cells=cells, metadata=metadata)


def write(
    folder: Path, paths: list[Path], only: frozenset[int] | set[int] = frozenset(), *, public: bool = False
) -> list[Path]:
    """Sheets of each lecture, as Jupyter notebooks; those in which somebody wrote are left alone, with a line.

    Exercises are written into the folder, and solutions into ``instructor`` in it, unless they are for the public.
    """
    import nbformat

    written = []
    for path in paths:
        lecture = read(path)
        for kind, place in (("exercises", folder), *([] if public else [("solutions", folder / "instructor")])):
            place.mkdir(parents=True, exist_ok=True)
            links = None if public else f"{Path(os.path.relpath(FOLDER, place)).as_posix()}/"
            made = sheet(lecture, solutions=kind == "solutions", only=only, links=links)
            target = place / f"{kind}-{path.stem}.ipynb"
            made.metadata["theory"] = {"words": words(made)}
            if target.exists() and wrote_in(target):
                print(f"{target}: left alone, as you wrote in it; rename it to get a new one", flush=True)
                continue
            nbformat.write(made, target)
            written.append(target)
    return written


def wrote_in(path: Path) -> bool:
    """Whether somebody changed the cells of a sheet since it was made."""
    import nbformat

    there = nbformat.read(path, as_version=4)
    return there.metadata.get("theory", {}).get("words") != words(there)


def run(path: Path) -> float:
    """Run a sheet as Jupyter would, in a folder of its own; seconds, or the error of the cell that failed."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        options = {"kernel_name": "python3", "resources": place, "extra_arguments": QUIET}
        nbclient.NotebookClient(notebook, timeout=600, **options).execute()
    return time.perf_counter() - begin


def exercises(text: str) -> set[int]:
    """The numbers of ``--only``."""
    numbers = text.split(",")
    if not all(number.isdecimal() for number in numbers):
        raise argparse.ArgumentTypeError(f"got {text}, allowed: numbers with commas between them, 1,3 for example")
    return set(map(int, numbers))


def main(*words: str) -> int:
    """Write sheets, and run those with solutions if asked to; 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", help="lectures, 04 for example; all of them if none is named")
    parser.add_argument("--out", type=Path, default=FOLDER / "sheets", help="folder for the sheets")
    parser.add_argument("--only", metavar="1,3", type=exercises, default=set(), help="these exercises of each lecture")
    parser.add_argument("--public", action="store_true", help="exercises alone, without links to the lectures")
    parser.add_argument("--paper", action="store_true", help="also as HTML and PDF, to be printed")
    parser.add_argument("--run", action="store_true", help="run the sheets of solutions, too")
    arguments = parser.parse_args(words)
    for number in arguments.numbers:
        if not number.isdecimal() or not lectures(number):
            parser.error(f"lecture: got {number}, allowed: {', '.join(path.name[:2] for path in lectures())}")
    failed, only = 0, arguments.only
    if not arguments.public:
        write_lectures(FOLDER)  # to which the sheets link
    for made in write(arguments.out, lectures(*arguments.numbers), only, public=arguments.public):
        said = ""
        if arguments.run and made.stem.startswith("solutions-"):
            try:
                said = f"  runs by itself, {run(made):.0f} s"
            except Exception as error:  # of a cell, or of a kernel that died: the other sheets run all the same
                failed, said = 1, f"  FAILED\n{error}"
        print(made, said, sep="", flush=True)
        if arguments.paper:
            from paper import printed

            print(*printed(made), sep="\n", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
