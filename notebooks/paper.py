"""A sheet on paper: one page of HTML that needs no network, and a PDF where Chromium is installed.

Formulas are MathML, which the browser typesets alone.  ``make sheets ARGS="04 --paper"`` calls this.
"""

from __future__ import annotations

import html
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from slides import markdown

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
STYLE = """
@page { size: A4; margin: 18mm; }
body { font: 11pt/1.4 system-ui, sans-serif; max-width: 175mm; margin: auto; }
h1, h2, h3 { line-height: 1.2; break-after: avoid; }
pre { font: 8.5pt/1.35 monospace; white-space: pre-wrap; background: #f6f6f6; padding: 2mm; }
pre { break-inside: avoid-page; }
code { font-family: monospace; } a { color: inherit; }
table { border-collapse: collapse; } th, td { border-bottom: 1px solid #ccc; padding: 1mm 3mm; }
"""


def page(notebook) -> str:
    """The cells of a notebook as HTML, without what they showed."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    def body() -> Iterator[str]:
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                yield markdown().render(cell.source)
            else:
                marked = highlight(cell.source, PythonLexer(), HtmlFormatter(nowrap=True, noclasses=True, style="bw"))
                yield f"<pre>{marked}</pre>"

    title = notebook.cells[0].source.splitlines()[0].lstrip("# ")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{chr(10).join(body())}\n</body>\n</html>\n"
    )


def printed(path: Path) -> list[str]:
    """Write a notebook as HTML and PDF beside it; the names, or why there is no PDF."""
    import nbformat

    target = path.with_suffix(".html")
    target.write_text(page(nbformat.read(path, as_version=4)), encoding="utf-8")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        return [str(target), f"no PDF, as none of {', '.join(BROWSERS)} is installed: print the HTML from any browser"]
    pdf, root = path.with_suffix(".pdf").absolute(), ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            *root,
            f"--user-data-dir={profile}",
            "--no-pdf-header-footer",
        ]
        command += [f"--print-to-pdf={pdf}", target.absolute().as_uri()]
        made = subprocess.run(command, capture_output=True, timeout=120)
    if made.returncode or not pdf.exists():
        return [str(target), f"no PDF: {browser} failed; print the HTML from any browser"]
    return [str(target), str(pdf)]
