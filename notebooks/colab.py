"""Lecture 4 for Google Colab: a notebook whose first cell installs the package from its repository.

python notebooks/colab.py    # writes colab/04-sparsify-and-quantize.ipynb; a test compares it with the lecture
"""

from __future__ import annotations

import re
import sys

from prepare import NOTEBOOKS, convert

LECTURE = "04-sparsify-and-quantize"
TARGET = NOTEBOOKS / "colab" / f"{LECTURE}.ipynb"
PAGES = re.compile(r"\[([^\]]*)\]\((?!\w+://|#)[^)]*\)")  # links to pages of this repository
INSTALL = """# Install the package from its repository, unless it is there: a minute or two in Google Colab.
import importlib.util
import os
import subprocess
import sys

REPOSITORY = os.environ.get("THEORY_REPOSITORY", "https://github.com/OWNER/theory")  # the address of your clone
if importlib.util.find_spec("theory") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", f"git+{REPOSITORY}"], check=True)
    importlib.invalidate_caches()"""


def notebook() -> str:
    """The notebook as text."""
    import nbformat

    made = convert(NOTEBOOKS / f"{LECTURE}.md")
    for cell in made.cells:
        hidden = cell.metadata.pop("jupyter", None)
        if hidden:  # Colab folds a cell with a title
            cell.source = cell.source.replace("# Solution\n", "# @title Solution\n", 1)
            cell.metadata["cellView"] = "form"
        if cell.cell_type == "markdown":  # other pages are not there
            cell.source = PAGES.sub(r"\1", cell.source)
    install = nbformat.v4.new_code_cell(INSTALL, id="install")
    made.cells.insert(1, install)
    del made.metadata["theory"], made.metadata["language_info"]  # which names a version of Python
    return nbformat.writes(made) + "\n"


def main() -> int:
    """Write it."""
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(notebook(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
