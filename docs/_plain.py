"""The pages are plain Markdown, so that a code host shows them well; what Sphinx needs beyond that is added here.

``conf.py`` calls `for_sphinx` on each page before it is parsed:

``[lecture 4](../notebooks/04-....md)``   leads to the lecture's page
``[`th.run`](api.md#run)``                leads to the entry of a name
``<a id="..."></a>``                      is a target that other pages can name, if it is alone in its line
``<!-- toctree: a b* -->``                lists pages below this one
``<!-- executed -->``                     runs the Python of the page, and shows what it prints

``python docs/_plain.py`` writes files into the pages: after ``<!-- file: examples/x.py -->`` stands a block with the
text of that file, and after ``<!-- file: ../README.md -->`` the first block of Python of that page.  A test compares
them.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
FILE = re.compile(r"^<!-- file: (\S+) -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"(<!-- (?:file|not run): [^\n]* -->\n)?^```python$", re.MULTILINE)
HEADER = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
    format_version: 0.13
kernelspec:
  display_name: Python 3 (ipykernel)
  language: python
  name: python3
---

"""


def for_sphinx(text: str) -> str:
    """A page as MyST reads it."""
    text = re.sub(r"\]\((?:\.\./)+notebooks/README\.md", "](/lectures/index.md", text)
    text = re.sub(r"\]\((?:\.\./)+notebooks/([\w-]+\.md)", r"](/lectures/\1", text)
    text = re.sub(r"\]\((?:\.\./)+CHANGELOG\.md", "](/changelog.md", text)
    text = re.sub(r"\[([^]]*)\]\((?:\.\./)+((?:notebooks/colab/|[A-Z]+)[^)]*)\)", r"\1 (`\2`)", text)  # no page there
    text = re.sub(r'(?:<a id="[\w.-]+"></a>)?\[`th\.([\w.]+)`\]\([^)]*(?:api\.md|\.py)[^)]*\)', name_in_sphinx, text)
    text = re.sub(r"\[([^]]*)\]\((?:\.\./)+theory/[^)]*\)", r"\1", text)  # nor of the code
    text = re.sub(r"\]\([\w./]*errata\.md#((?:erratum|quoted|reading)-[\w-]+)\)", r"](#\1)", text)
    text = re.sub(r'^<a id="([\w-]+)"></a>$', r"(\1)=", text, flags=re.MULTILINE)
    text = re.sub(
        r"^<!-- toctree: (.*) -->$",
        lambda found: "\n".join(["```{toctree}", ":hidden:", ":glob:", "", *found[1].split(), "```"]),
        text,
        flags=re.MULTILINE,
    )
    if "<!-- executed -->" in text:
        text = HEADER + PYTHON.sub(lambda found: found[0] if found[1] else "```{code-cell} ipython3", text)
    return text


def name_in_sphinx(found: re.Match) -> str:
    """A role for a name of the package: what a subpackage passes on is documented in its module."""
    part, _, name = found[1].rpartition(".")
    home = f"theory.{part}".rstrip(".")
    if part:
        home = getattr(getattr(importlib.import_module(home), name, None), "__module__", home)
    return f"{{py:obj}}`th.{found[1]} <{home}.{name}>`"


def block_of(page: Path, name: str) -> str:
    """What stands in the block of a file."""
    text = (page.parent / name).read_text(encoding="utf-8")
    if name.endswith(".md"):
        (text,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[:1]
    return text


def with_files(page: Path) -> str:
    """The page with each file as it is now."""
    return FILE.sub(
        lambda found: f"<!-- file: {found[1]} -->\n```{found[2]}\n{block_of(page, found[1])}```",
        page.read_text(encoding="utf-8"),
    )


def main() -> int:
    """Write the files into the pages."""
    for page in sorted(DOCS.glob("*.md")):
        made = with_files(page)
        if made != page.read_text(encoding="utf-8"):
            page.write_text(made, encoding="utf-8")
            print(page.relative_to(DOCS.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
