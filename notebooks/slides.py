"""The lectures as slides: one page for each, which needs no network; executed, with the figures.

python notebooks/slides.py           # all lectures, into the folder lectures/slides/
python notebooks/slides.py 04 07     # these two
python notebooks/slides.py --no-run  # without executing them: no results and no figures, but at once

A heading ``##`` begins a column of slides, to the right; ``###``, a figure, and what does not fit on a slide begin the
next one below.  A figure has its caption, the paragraph after it, on its own slide; long code is divided between
statements.  Code that is folded in the notebook is left out, and so are the exercises.  reveal.js is in the folder
reveal/ beside this file, formulas are MathML: a slide is typeset by the browser alone.
"""

from __future__ import annotations

import argparse
import ast
import html
import itertools
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from prepare import FOLDER, NOTEBOOKS, QUIET, convert
from sheets import HEADING, is_solution, lectures, read

REVEAL = NOTEBOOKS / "reveal"
HEIGHT = 620  # pixels of a slide of 1280 x 720, below its heading
FIGURE = 400  # of a figure, at least; it takes what its caption leaves
LINE, CODE, WIDTH = 36, 27, 94  # pixels of a line of prose, and of code; characters of a line of code
WIDE = 100  # characters of a line of prose
NAMELESS = {"The maths", "The picture"}  # headings that say nothing on a slide: the section's stands there
LINK = re.compile(r'href="(\d\d-[\w-]+|index|notation)\.ipynb([^"]*)"')
NOT_SHOWN = ("text/html", "application/vnd.jupyter.widget-view+json")  # lines about compiling, and sliders
STYLE = """
.reveal { font: 25px/1.4 system-ui, sans-serif; color: #222; }
.reveal .slides section { text-align: left; height: 720px; overflow: hidden; flex-direction: column;
  box-sizing: border-box; padding: 0 0 24px; }
.reveal .slides section > * { flex: 0 0 auto; max-width: 100%; }
.reveal h1 { font-size: 60px; margin: 60px 0 20px; line-height: 1.1; }
.reveal h2, .reveal h3 { margin: 0 0 16px; line-height: 1.2; }
.reveal strong { font-weight: 600; } .reveal em { font-style: italic; }
.reveal div[style*="overflow-x"] { overflow: visible !important; margin: 14px 0 !important; }
.reveal .slide-number { bottom: 2px; background: none; color: #666; }
.reveal h2 { font-size: 40px; } .reveal h3 { font-size: 36px; }
.reveal .section { font-size: 20px; line-height: 1.2; color: #666; margin: 0 0 2px; }
.reveal p, .reveal ul, .reveal ol, .reveal table, .reveal blockquote { margin: 0 0 14px; }
.reveal ul, .reveal ol { padding-left: 1.2em; } .reveal a { color: #0b62b0; }
.reveal pre { margin: 0 0 14px; padding: 8px 12px; font: 21px/27px monospace; white-space: pre-wrap; }
.reveal pre.code { background: #f6f6f6; } .reveal pre.result { border-left: 3px solid #ccc; }
.reveal code { font: 0.85em monospace; } .reveal pre code { font: inherit; }
.reveal table { border-collapse: collapse; font-size: 21px; align-self: flex-start; }
.reveal th, .reveal td { padding: 3px 12px; border-bottom: 1px solid #ddd; text-align: left; }
.reveal blockquote { border-left: 3px solid #ccc; padding-left: 16px; }
.reveal .slides section > img { flex: 1 1 0; min-height: 300px; margin: 0 auto 10px; object-fit: contain; }
"""
# What is higher than a slide is made smaller when it is shown.
SCRIPT = """
const fit = () => {
  const slide = Reveal.getCurrentSlide();
  slide.style.zoom = 1;
  slide.style.height = "720px";
  const high = slide.scrollHeight;
  if (high <= 720) return;
  slide.style.height = `${high}px`;
  slide.style.zoom = 720 / high;
};
Reveal.on("ready", fit);
Reveal.on("slidechanged", fit);
Reveal.initialize({ width: 1280, height: 720, margin: 0.03, center: false, hash: true, transition: "none",
                    display: "flex", controls: false, slideNumber: "h.v", navigationMode: "linear" });
"""


class Piece(NamedTuple):
    """Something that is not divided: its HTML, its height in pixels, and the heading that it is, 0 for none."""

    html: str
    height: float
    level: int = 0
    kind: str = "text"


def markdown():
    """A parser of Markdown with formulas and tables, as the lectures have them."""
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    from theory.reporting.formulas import formula

    parser = MarkdownIt("commonmark").enable("table")
    drawn = lambda latex, options: formula(latex, options["display_mode"])  # noqa: E731
    return parser.use(dollarmath_plugin, renderer=drawn, double_inline=True)


def prose(text: str) -> Iterator[Piece]:
    """The blocks of a cell of Markdown."""
    parser = markdown()
    tokens, block = parser.parse(text), []
    for token in tokens:
        block.append(token)
        if token.level or token.nesting == 1:
            continue
        made = parser.renderer.render(block, parser.options, {})
        made = LINK.sub(r'href="\1.html\2"', made).replace('href="../docs/', 'href="../../docs/')
        first, words = block[0], "".join(inner.content for inner in block)
        rows = sum(inner.type in ("list_item_open", "tr_open", "paragraph_open") for inner in block)
        height = LINE * max(rows, len(words) / WIDE + 0.5) + 14
        if first.type == "math_block":
            height = 80 + 50 * words.count("\\\\")
        yield Piece(made, height, int(first.tag[1]) if first.type == "heading_open" else 0)
        block = []


def divided(lines: list[str], most: int) -> Iterator[tuple[int, int, int]]:
    """Code or what it printed, in parts of about the same length, divided at empty lines or where a statement begins.

    Each part is given by its first line, its end, and how many lines it has on a slide.
    """
    high = [max(1, -(-len(line) // WIDTH)) for line in lines]
    begin = 0
    while (left := sum(high[begin:])) > most and begin < len(lines) - 1:
        equal = min(most, left // -(-left // most) + 2)
        fits = max([n for n in range(begin + 1, len(lines)) if sum(high[begin:n]) <= equal], default=begin + 1)
        places = range((begin + 1 + fits) // 2, fits + 1)
        ends = [n for n in places if not lines[n].strip()]
        ends = ends or [n for n in places if lines[n][:1] not in (" ", ")", "]", "}")] or [fits]
        yield begin, ends[-1], sum(high[begin : ends[-1]])
        begin = next(n for n in range(ends[-1], len(lines)) if lines[n].strip())
    yield begin, len(lines), sum(high[begin:])


def source(text: str, kind: str = "code") -> Iterator[Piece]:
    """Code, with its colours, or a result as it is printed."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    lines = text.rstrip().lstrip("\n").splitlines()
    shown = html.escape("\n".join(lines)).splitlines()
    if kind == "code":  # every line has its own colours
        colours = HtmlFormatter(nowrap=True, noclasses=True, style="default")
        shown = highlight("\n".join(lines), PythonLexer(stripnl=False), colours).splitlines()
    room = HEIGHT - 40 if kind == "code" else HEIGHT - 130  # above a result there are the lines that printed it
    for begin, end, high in divided(lines, room // CODE):
        inside = "\n".join(shown[begin:end])
        yield Piece(f'<pre class="{kind}">{inside}</pre>', CODE * high + 30, kind=kind)


def is_check(text: str) -> bool:
    """Whether a cell only checks what the lecture says, and shows nothing."""
    parts = [part for part in ast.walk(ast.parse(text)) if isinstance(part, ast.stmt)]
    return all(isinstance(part, (ast.Assert, ast.For)) for part in parts)


def results(cell) -> Iterator[Piece]:
    """What a cell has shown."""
    for printed, outputs in itertools.groupby(cell.get("outputs", []), lambda output: output.output_type == "stream"):
        if printed:
            yield from source("".join(output.text for output in outputs), "result")
        else:
            yield from itertools.chain.from_iterable(map(displayed, filter(is_shown, outputs)))


def is_shown(output) -> bool:
    """Whether it is something to see: no line about compiling, and no slider."""
    data = output.get("data", {})
    return output.output_type == "error" or not any(kind in data for kind in NOT_SHOWN)


def displayed(output) -> Iterator[Piece]:
    """What a cell has displayed."""
    if output.output_type == "error":
        raise RuntimeError(f"{output.ename}: {output.evalue}")
    if "image/png" in output.data:
        picture = output.data["image/png"].replace("\n", "")
        yield Piece(f'<img alt="figure" src="data:image/png;base64,{picture}">', FIGURE, kind="figure")
    elif "text/markdown" in output.data:  # of show
        yield from source(re.sub(r"^```\w*\n|```$", "", output.data["text/markdown"]))
    else:
        yield from source(output.data.get("text/plain", ""), "result")


def pieces(cells: list) -> Iterator[Piece]:
    """All that is shown of a lecture, up to its exercises."""
    for cell in cells:
        if cell.cell_type == "markdown":
            text, exercises, _ = f"\n{cell.source}".partition(f"\n{HEADING}\n")
            yield from prose(text)
            if exercises:
                return
        elif not is_solution(cell):
            folded = cell.metadata.get("jupyter", {}).get("source_hidden")
            if not folded and "begin_lecture()" not in cell.source and not is_check(cell.source):
                yield from source(cell.source)
            yield from results(cell)


def slides(shown: Iterator[Piece]) -> list[list[str]]:
    """Columns of slides, each the HTML of a section."""
    columns: list[list[str]] = []
    section, heading, body, height, last = "", "", [], 0.0, ""

    def end() -> None:
        nonlocal body, heading, height, section
        if body:
            columns[-1].append(heading + "\n".join(body))
            heading, section = heading.replace("h1>", "h2>"), section.replace("h1>", "h2>")
        body, height = [], 0.0

    for piece in shown:
        if piece.level:
            end()
            if piece.level < 3 or not columns:
                columns.append([])
                section = heading = piece.html
            elif re.sub("<.*?>", "", piece.html).strip() in NAMELESS:
                heading = section
            else:
                above = re.sub("</?h.>", "", section).strip()
                heading = f'<p class="section">{above}</p>\n{piece.html}'
            last = ""
            continue
        caption = last == "figure" and piece.kind == "text"
        little = 60 if piece.kind == "text" and piece.height <= 2 * LINE + 14 else 0  # then the slide is made smaller
        if (height + piece.height > HEIGHT + little and not caption) or (piece.kind == "figure" and height > 3 * LINE):
            end()
        body.append(piece.html)
        height += min(piece.height, HEIGHT - height) if caption else piece.height
        last = piece.kind
    end()
    return [column for column in columns if column]


def page(title: str, cells: list) -> str:
    """The slides of a lecture as HTML: all that it needs is in it."""
    part = lambda name: (REVEAL / name).read_text(encoding="utf-8")  # noqa: E731
    section = "<section>\n{}\n</section>".format
    body = "\n".join(section("\n".join(map(section, column))) for column in slides(pieces(cells)))
    script = part("reveal.js").replace("//# sourceMappingURL=reveal.js.map", "")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
        f"<style>\n{part('reset.css')}\n{part('reveal.css')}\n{STYLE}</style>\n</head>\n<body>\n"
        f'<div class="reveal"><div class="slides">\n{body}\n</div></div>\n'
        f"<script>\n{script}\n</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def executed(notebook, name: str = ""):
    """The notebook with its results, run as Jupyter would, in a folder of its own; lines say how far it is."""
    import nbclient

    begin, at, done = time.monotonic(), 0, threading.Event()

    def started(cell, cell_index: int) -> None:
        nonlocal at
        at = cell_index + 1

    def tell() -> None:
        while not done.wait(5):
            print(f"{name}: cell {at} of {len(notebook.cells)}, {time.monotonic() - begin:.0f} s", flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            place = {"metadata": {"path": folder}}
            options = {"kernel_name": "python3", "resources": place, "extra_arguments": QUIET, "on_cell_start": started}
            return nbclient.NotebookClient(notebook, timeout=1200, **options).execute()
    finally:
        done.set()
        teller.join()


def main(*words: str) -> int:
    """Write the slides; 1 if a lecture fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", help="lectures, 04 for example; all of them if none is named")
    parser.add_argument("--out", type=Path, default=FOLDER / "slides", help="folder for the slides")
    parser.add_argument("--no-run", action="store_true", help="do not execute the lectures")
    arguments = parser.parse_args(words)
    for number in arguments.numbers:
        if not number.isdecimal() or not lectures(number):
            parser.error(f"lecture: got {number}, allowed: {', '.join(path.name[:2] for path in lectures())}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for path in lectures(*arguments.numbers):
        notebook, target = convert(path), arguments.out / f"{path.stem}.html"
        try:
            if not arguments.no_run:
                print(f"{path.stem}: is run, which takes a minute or two the first time", flush=True)
                notebook = executed(notebook, path.stem)
            target.write_text(page(read(path).title, notebook.cells), encoding="utf-8")
            print(target, flush=True)
        except Exception as error:  # of a cell, or of a kernel that died: the other lectures are written all the same
            failed = 1
            print(f"{path.stem}: FAILED\n{error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
