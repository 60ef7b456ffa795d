"""The lectures as Jupyter notebooks in the folder ``lectures/``: for JupyterLab, Visual Studio Code and Colab.

python notebooks/prepare.py           # all pages that are not there, or that changed here and not there
python notebooks/prepare.py --fresh   # all of them; what was changed in a notebook is saved beside it, as *.mine.ipynb

The notebooks are copies to work in: nothing is written back, and git does not see them.  Links between pages lead from
notebook to notebook, solutions are folded, a cell below the quiz checks its answers, and ``index.ipynb`` is the list of
lectures.  A notebook in which somebody wrote is never replaced: where the lecture has changed since, a line says so.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import re
import sys
import zlib
from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parent
FOLDER = NOTEBOOKS.parent / "lectures"
QUIET = ["--log-level=ERROR"]  # of a kernel, which warns of how it is reached
SOLUTION = "solution"
PICTURE = re.compile(r"^!\[([^\]]*)\]\(\.\./figures/lectures/([\w-]+)\.png\)\n*", re.MULTILINE)
LINK = re.compile(r"\]\((README|notation|\d\d-[\w-]+)\.md((?:#[^)]*)?)\)")


def pages() -> list[Path]:
    """Everything that becomes a notebook: the lectures, their index, and the page of the notation."""
    return sorted(NOTEBOOKS.glob("*.md"))


def notebook_name(stem: str) -> str:
    """The name of a page's notebook; ``README`` is the index."""
    return f"{'index' if stem == 'README' else stem}.ipynb"


def with_links(text: str, folder: str = "") -> str:
    """Markdown whose links to pages of this folder lead to their notebooks, which lie in ``folder``."""
    return LINK.sub(lambda found: f"]({folder}{notebook_name(found[1])}{found[2]})", text)


def read_page(page: Path):
    """A page as a notebook, without the pictures that are files: its cells draw them."""
    import jupytext

    return jupytext.reads(PICTURE.sub("", page.read_text(encoding="utf-8")), fmt="md")


def checked(cells: list, number: int) -> list[str]:
    """The names that a solution defines and the cells below it, up to the next text, use."""
    from sheets import asked, is_solution

    if not is_solution(cells[number]):
        return []
    below = list(itertools.takewhile(lambda cell: cell.cell_type == "code", cells[number + 1 :]))
    return asked(cells[number], below) if below else []


def fold(cell, named: list[str]) -> None:
    """Fold a solution, or a cell whose input is of little interest: Jupyter shows its first line until it is opened."""
    tags = cell.metadata.get("tags", [])
    if SOLUTION in tags or "hide-input" in tags:
        cell.metadata["jupyter"] = {"source_hidden": True}
        cell.metadata["tags"] = [tag for tag in tags if not tag.startswith("hide")]
    if SOLUTION in tags:
        cell.source = f"# Solution{': ' if named else ''}{', '.join(named)}\n{cell.source}"
    if not cell.metadata.get("tags", ["one"]):
        del cell.metadata["tags"]


QUIZ = '''def quiz(letters):
    """Say which answers are right: quiz({1: "a", 2: "c"})."""
    import zlib

    right = %s
    for number, letter in letters.items():
        found = zlib.crc32(f"{number}{letter.strip(' ()').lower()}".encode())
        said = "right" if found == right.get(number) else "not right" if letter else "open"
        print(f"question {number}: {said}")'''


def quiz_answers(text: str) -> dict[int, str]:
    """The letters that are right in a lecture's quiz, from its folded answers: one for each question, or all in one."""
    section = text.partition("### Quiz\n")[2].partition("\n## ")[0]
    all_in_one = section.partition("<summary>Answers</summary>")[2]
    found = re.findall(r"(\d) \((\w)\)", all_in_one) or enumerate(re.findall(r"</summary>\s+\((\w)\)", section), 1)
    return {int(number): letter for number, letter in found}


def add_quiz(cells: list) -> None:
    """Put two cells below the quiz: one that checks letters, folded and without the letters, and one to write them."""
    from nbformat.v4 import new_code_cell, new_markdown_cell

    for place, cell in enumerate(cells):
        if cell.cell_type == "markdown" and "### Quiz\n" in cell.source:
            end = cell.source.find("\n## ", cell.source.index("### Quiz\n"))
            end = cell.source.rindex("</details>", 0, None if end < 0 else end) + len("</details>")
            head, rest = cell.source[:end], cell.source[end:].strip()
            answers = quiz_answers(cell.source)
            known = {number: zlib.crc32(f"{number}{letter}".encode()) for number, letter in answers.items()}
            checks = new_code_cell(QUIZ % known, metadata={"tags": ["hide-input"]})
            mine = new_code_cell(f"quiz({dict.fromkeys(answers, '')})  # your letters".replace("'", '"'))
            made = [new_markdown_cell(head), checks, mine, *([new_markdown_cell(rest)] if rest else [])]
            cells[place : place + 1] = made
            return


def words(notebook) -> str:
    """A digest of what is written in a notebook: its cells, without results."""
    cells = [[cell.cell_type, cell.source.rstrip()] for cell in notebook.cells]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()[:16]


def convert(page: Path, *, quiz: bool = False):
    """The notebook of a page, with cells that check its quiz if asked for."""
    from ipykernel.ipkernel import IPythonKernel
    from nbformat.v4 import new_markdown_cell, new_notebook

    notebook = read_page(page)
    if page.stem[0].isalpha():  # prose alone: what it shows of a shell is not to be run
        body = page.read_text(encoding="utf-8")
        notebook = new_notebook(cells=[new_markdown_cell(body.strip())])
    if quiz:
        add_quiz(notebook.cells)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"{page.stem[:2].lower()}-{number}"  # the same in every copy
        if cell.cell_type == "markdown":
            cell.source = with_links(cell.source)
        else:
            fold(cell, checked(notebook.cells, number))
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    # no word of jupytext: nothing is paired; all that a kernel tells Lab, so that an opened page has no changes
    notebook.metadata = type(notebook.metadata)(kernelspec=kernel, language_info=IPythonKernel.language_info)
    notebook.metadata["theory"] = {"words": words(notebook)}
    return notebook


def free_name(path: Path) -> Path:
    """Where what somebody wrote in a notebook is saved: a name that is not taken."""
    names = (path.with_suffix(f".mine{n}.ipynb") for n in ("", *range(2, 1000)))
    return next(name for name in names if not name.exists())


def write(folder: Path, *, fresh: bool = False) -> list[str]:
    """Write the notebooks that are missing or out of date; what there is to say about others."""
    import nbformat

    folder.mkdir(parents=True, exist_ok=True)
    said = []
    for page in pages():
        made, path = convert(page, quiz=True), folder / notebook_name(page.stem)
        if path.exists():
            there = nbformat.read(path, as_version=4)
            before, now = there.metadata.get("theory", {}).get("words"), words(there)
            if before == made.metadata["theory"]["words"] and not (fresh and now != before):
                continue  # the lecture has not changed: results and notes stay
            if now != before:
                if not fresh:
                    said.append(f"{path.name}: you wrote in it, and the lecture changed; rename it to get the new one")
                    continue
                saved = free_name(path)
                path.replace(saved)
                said.append(f"{path.name}: written anew; yours is {saved.name}")
        nbformat.write(made, path)
    return said


def main(*arguments: str) -> int:
    """Write the notebooks and say which were left alone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the notebooks")
    parser.add_argument("--fresh", action="store_true", help="also those in which somebody wrote, saved beside the new")
    chosen = parser.parse_args(arguments)
    for line in write(chosen.out, fresh=chosen.fresh):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
