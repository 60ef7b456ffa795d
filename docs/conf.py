"""Sphinx settings. Pages that depend on the code (API, claims, lectures) are made by _make.py before the build."""

import functools
import hashlib
import os
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import _make  # noqa: E402
from _plain import for_sphinx  # noqa: E402
from docutils import nodes  # noqa: E402
from jinja2 import FileSystemLoader  # noqa: E402
from jinja2.sandbox import SandboxedEnvironment  # noqa: E402
from numpydoc import docscrape_sphinx  # noqa: E402
from sphinx.domains.python import PyAttribute, PyMethod, PyProperty  # noqa: E402

from theory import __version__  # noqa: E402
from theory.reporting.formulas import formula  # noqa: E402

_make.everything()

project = "theory"
copyright = "theory developers"
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
exclude_patterns = ["_build", "**.ipynb_checkpoints", "jupyter_execute"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

os.environ["THEORY_PROGRESS"] = "0"  # no line about compiling on the pages
# Lectures run once and are cached until they or the package change; an error in a cell is an error of the build.
source = hashlib.sha256(b"".join(path.read_bytes() for path in sorted((DOCS.parent / "theory").rglob("*.py"))))
nb_execution_mode = "cache"
nb_execution_cache_path = str(DOCS / "_build" / f".jupyter_cache-{source.hexdigest()[:12]}")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types stand in the docstrings
numpydoc_show_class_members = False
numpydoc_use_plots = False

html_theme = "furo"
html_title = "theory"
html_static_path = []
html_extra_path = [str(_make.BOOK)] if _make.BOOK.is_dir() else []
html_math_renderer = "mathml"  # without a script or a network

TEMPLATES = Path(docscrape_sphinx.__file__).parent / "templates"


def visit_math(translator, node):
    """Inline formulas."""
    translator.body.append(formula(node.astext(), block=False))
    raise nodes.SkipNode


def visit_math_block(translator, node):
    """Displayed formulas."""
    translator.body.append(formula(node.astext(), block=True))
    raise nodes.SkipNode


def skip_the_obvious(app, what, name, thing, skip, options):
    """Leave out fields of which a module's class says no more than their numbers."""
    return True if name == "domain" or not _make.tells(thing) else skip


def keep_the_bars(app, what, name, thing, options, lines):
    """Keep |v| as a magnitude, which reStructuredText takes for a substitution; examples and formulas stay."""
    example = False
    for i, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example:
            parts = re.split(r"(``.*?``|:math:`.*?`)", line)
            kept = ("``", ":math:")
            lines[i] = "".join(part if part.startswith(kept) else part.replace("|", r"\|") for part in parts)


def plain_markdown(app, name, source):
    """What a page says in plain Markdown, as MyST has it."""
    source[0] = for_sphinx(source[0])


def keep_template():
    """Let numpydoc parse its template once, not again for each docstring."""
    environment = functools.cache(lambda: SandboxedEnvironment(loader=FileSystemLoader(TEMPLATES)))
    docscrape_sphinx.SandboxedEnvironment = lambda loader: environment()


def setup(app):
    keep_template()
    for member in (PyAttribute, PyMethod, PyProperty):  # a page's contents list classes and functions
        member._toc_entry_name = lambda self, signature: ""
    app.connect("autodoc-process-docstring", keep_the_bars, priority=900)  # after numpydoc
    app.connect("autodoc-skip-member", skip_the_obvious)
    app.connect("source-read", plain_markdown)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
