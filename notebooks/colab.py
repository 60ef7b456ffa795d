"""The lectures for Google Colab: notebooks whose first cell installs the package from its repository.

python notebooks/colab.py               # writes colab/04-sparsify-and-quantize.ipynb; a test compares it
python notebooks/colab.py --out launch  # all lectures, into this folder; a workflow puts them on the branch launch

The address of the repository stands in one place, as Repository below [project.urls] in pyproject.toml. Where it is
not there, GitHub's workflow knows its own, and elsewhere no page has launch links.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tomllib
from pathlib import Path

from prepare import NOTEBOOKS, convert
from sheets import lectures

LECTURE = "04-sparsify-and-quantize"
TARGET = NOTEBOOKS / "colab" / f"{LECTURE}.ipynb"
PAGES = re.compile(r"\[([^\]]*)\]\((?!\w+://|#)[^)]*\)")  # links to pages of this repository
UNKNOWN = "https://github.com/OWNER/theory"
INSTALL = """# Install the package from its repository, unless it is there: a minute or two in Google Colab.
import importlib.util
import os
import subprocess
import sys

REPOSITORY = os.environ.get("THEORY_REPOSITORY", "https://github.com/OWNER/theory")  # the address of your clone
if importlib.util.find_spec("theory") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", f"git+{REPOSITORY}"], check=True)
    importlib.invalidate_caches()"""


def repository() -> str | None:
    """The address of the repository, or None if it is not known."""
    project = tomllib.loads((NOTEBOOKS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    slug = os.environ.get("GITHUB_REPOSITORY")
    return project.get("urls", {}).get("Repository") or (f"https://github.com/{slug}" if slug else None)


def launch_links(stem: str) -> str:
    """Links that open a lecture in Colab and in Binder; nothing where the repository is not known to be on GitHub."""
    known = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", repository() or "")
    if not known:
        return ""
    colab = f"https://colab.research.google.com/github/{known[1]}/blob/launch/{stem}.ipynb"
    binder = f"https://mybinder.org/v2/gh/{known[1]}/main?urlpath=lab/tree/lectures/{stem}.ipynb"
    return f"Run it without installing anything: [in Colab]({colab}) or [in Binder]({binder})."


def notebook(stem: str = LECTURE, address: str = UNKNOWN) -> str:
    """The notebook of a lecture as text."""
    import nbformat

    made = convert(NOTEBOOKS / f"{stem}.md", quiz=True)
    for cell in made.cells:
        hidden = cell.metadata.pop("jupyter", None)
        if hidden:  # Colab folds a cell with a title
            cell.source = cell.source.replace("# Solution\n", "# @title Solution\n", 1)
            cell.metadata["cellView"] = "form"
        if cell.cell_type == "markdown":  # other pages are not there
            cell.source = PAGES.sub(r"\1", cell.source)
    install = nbformat.v4.new_code_cell(INSTALL.replace(UNKNOWN, address), id="install")
    made.cells.insert(1, install)
    del made.metadata["theory"], made.metadata["language_info"]  # which names a version of Python
    return nbformat.writes(made) + "\n"


def main(*words: str) -> int:
    """Write it, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write all lectures, into this folder")
    folder = parser.parse_args(words).out
    wanted = {TARGET: notebook()}
    if folder:
        stems = [path.stem for path in lectures()]
        wanted = {folder / f"{stem}.ipynb": notebook(stem, repository() or UNKNOWN) for stem in stems}
    for target, text in wanted.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
