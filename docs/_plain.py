"""The pages are plain Markdown, so that a code host shows them well; what Sphinx needs beyond that is added here.

``conf.py`` calls `for_sphinx` on each page before it is parsed:

``[lecture 4](../notebooks/04-....md)``   leads to the lecture's page
``[`qsgd.variance`](claims.md)``          leads to the claim's own entry
``[`th.run`](api.md)``                    leads to the entry of a name
``<a id="..."></a>``                      is a target that other pages can name
``<!-- include: FILE -->``                is the text of a page that is made from the code
``<!-- toctree: a b c -->``               lists pages below this one
``<!-- executed -->``                     runs the Python of the page, and shows what it prints

``python docs/_plain.py`` writes files into the pages: after ``<!-- file: examples/x.py -->`` stands a block with the
text of that file, and after ``<!-- file: ../README.md -->`` the first block of Python of that page.  A test compares
them.
"""

from __future__ import annotations

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
    text = text.replace("](../notebooks/README.md", "](lectures/index.md")
    text = re.sub(r"\]\(\.\./notebooks/([\w-]+\.md)", r"](lectures/\1", text)
    text = re.sub(
        r"\[`([a-z][\w.-]*)`\]\(claims\.md\)",
        lambda found: f"[`{found[1]}`](#claim-{re.sub(r'[^a-z0-9]+', '-', found[1].lower())})",
        text,
    )
    text = re.sub(r"\[([^]]*)\]\(\.\./(notebooks/colab/[^)]*)\)", r"\1 (`\2`)", text)  # no page of the documentation
    text = re.sub(r"\[`th\.([\w.]+)`\]\(api\.md\)", r"{py:obj}`th.\1 <theory.\1>`", text)
    text = re.sub(r'^<a id="([\w-]+)"></a>$', r"(\1)=", text, flags=re.MULTILINE)
    text = re.sub(r"^<!-- include: (\S+) -->$", "```{include} \\1\n```", text, flags=re.MULTILINE)
    text = re.sub(
        r"^<!-- toctree: (.*) -->$",
        lambda found: "\n".join(["```{toctree}", ":hidden:", "", *found[1].split(), "```"]),
        text,
        flags=re.MULTILINE,
    )
    if "<!-- executed -->" in text:
        text = HEADER + PYTHON.sub(lambda found: found[0] if found[1] else "```{code-cell} ipython3", text)
    return text


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
