"""The lectures for print: a PDF of the whole course, with contents and an index, and a PDF of each lecture.

python notebooks/book.py            # into the folder lectures/book/: lectures.pdf, and a PDF for each lecture
python notebooks/book.py 04 07      # these two alone, without the book
python notebooks/book.py --no-run   # without executing them: no results and no figures

The lectures are executed once. One HTML page of the course is printed by Chromium, which must be on the PATH. It is
printed twice, because the page numbers of contents and index are read from the first PDF. Code that is folded in the
notebook is left out. Solutions and proofs stand at the end of a lecture.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from prepare import FOLDER, NOTEBOOKS, convert
from sheets import EXERCISE, HEADING, PROOF, is_solution, lectures, read
from slides import executed, markdown, results, source

BOOK = FOLDER / "book"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PAGE = re.compile(r'<a href="(?:(\d\d)-[\w-]+|(index|notation))\.ipynb[^"]*">(.*?)</a>', re.DOTALL)
ELSEWHERE = re.compile(r'<a href="(?![\w+.-]+:|#)[^"]*">(.*?)</a>', re.DOTALL)  # pages that are not part of the book
NUMBERED = re.compile(r'class="number" data-to="([^"]+)">')
TERMS = """\
all-reduce; asynchronous; audit; averaging; batch size; biased; bias; bits; catalyst; checkpoint; claim; clipping;
communication; condition number; consensus; contraction; convex; delay; drift; Elias; entropy; error feedback;
federated; gossip; gradient diversity; growing batches; heterogeneous; importance sampling; latency; learning rate;
local steps; lock-free; logistic regression; lower bound; mean interval; median; memory; mixing matrix; momentum;
mutant; overlap; parameter server; permutation; Polyak; power iteration; privacy; quantization; random-k; ranks;
robust; rotation; sampling; second moment; sign; singular; sketch; smooth; sparse; sparsification; spectral gap;
speed-up; stability; step size; straggler; strongly convex; ternary; threshold; top-k; trimmed mean; unbiased;
variance; variance reduction; virtual iterate; warm-up"""
STYLE = """
@page { size: A4; margin: 19mm 20mm 20mm; @bottom-center { content: counter(page); font: 9pt sans-serif; } }
@page :first { @bottom-center { content: ""; } }
* { box-sizing: border-box; }
body { margin: 0; width: 170mm; font: 10pt/1.42 "Liberation Serif", "DejaVu Serif", serif; color: #111; }
h1, h2, h3, h4 { font-family: sans-serif; line-height: 1.2; break-after: avoid; margin: 1.3em 0 0.5em; }
h1 { font-size: 21pt; margin-top: 0; } h2 { font-size: 14pt; } h3 { font-size: 11.5pt; } h4 { font-size: 10pt; }
article, nav { break-before: page; } article:first-child { break-before: auto; }
.title { height: 240mm; padding-top: 80mm; } .title h1 { font-size: 30pt; }
p, ul, ol, table, blockquote { margin: 0 0 0.7em; orphans: 3; widows: 3; } ul, ol { padding-left: 1.5em; }
a { color: inherit; text-decoration: none; } a[href^="http"] { text-decoration: underline; }
pre, code { font-family: "Liberation Mono", "DejaVu Sans Mono", monospace; } code { font-size: 0.88em; }
pre { font-size: 7.8pt; line-height: 1.32; margin: 0 0 0.8em; padding: 1.5mm 2mm; max-height: none !important;
  white-space: pre-wrap; overflow-wrap: anywhere; box-decoration-break: clone; }
pre code { font: inherit; } pre.code { background: #f4f4f4; }
pre.result { border-left: 2px solid #bbb; break-before: avoid; }
table { border-collapse: collapse; font-size: 9pt; } tr { break-inside: avoid; }
th, td { padding: 0.7mm 2.5mm; border-bottom: 0.5px solid #bbb; text-align: left; vertical-align: top; }
blockquote { break-inside: avoid; border: 1px solid #999; padding: 2mm 4mm 0; margin: 0 0 1em; }
img { display: block; max-width: 100%; max-height: 90mm; margin: 1mm auto 3mm; break-inside: avoid;
  break-before: avoid; }
div[style*="overflow-x"] { overflow: visible !important; break-inside: avoid; }
math { font-family: "STIX Two Math", "Latin Modern Math", "DejaVu Math TeX Gyre", math; }
nav .line { display: flex; gap: 2mm; } nav .line.part { font-weight: bold; margin-top: 2.2mm; }
nav .line:not(.part) { padding-left: 6mm; } nav .number { margin-left: auto; }
.index { columns: 2; column-gap: 8mm; font-size: 8.6pt; }
.index p { margin: 0 0 0.3mm; padding-left: 4mm; text-indent: -4mm; }
.index code { font-size: 7.6pt; overflow-wrap: anywhere; }
"""
# A formula or a table that is wider than the page is made smaller.
SCRIPT = """
for (const element of document.querySelectorAll("table, div[style*='overflow-x'], p > math"))
  if (element.scrollWidth > element.parentElement.clientWidth + 1)
    element.style.zoom = Math.max(0.5, element.parentElement.clientWidth / element.scrollWidth);
"""


def text(words: str, links: bool) -> str:
    """Markdown as HTML; links to other lectures lead there in the book, and are words alone in the PDF of one."""
    made = markdown().render(words)

    def place(found: re.Match) -> str:
        target = f"lecture-{found[1]}" if found[1] else {"index": "contents"}.get(found[2], found[2])
        return f'<a href="#{target}">{found[3]}</a>' if links else found[3]

    return ELSEWHERE.sub(r"\1", PAGE.sub(place, made)).replace("<details>", "<details open>")


def body(cells: list, links: bool) -> str:
    """A lecture as HTML: its text, code and results, then its exercises, then solutions and proofs."""
    parts, solutions, exercises = [], [], False
    for cell in cells:
        if cell.cell_type == "markdown":
            words = cell.source
            exercises = exercises or f"\n{HEADING}\n" in f"\n{words}\n"
            if exercises:
                for piece in re.split(rf"(?m)^(?={EXERCISE})", words):
                    if piece.startswith(EXERCISE):
                        solutions.append(f"#{piece.splitlines()[0]}\n\n")
                    proofs = "\n\n".join(proof for _, proof in PROOF.findall(piece))
                    solutions += [f"**Proof.** {proofs}"] if proofs else []
                words = PROOF.sub("", words)
            parts.append(text(words, links))
        elif is_solution(cell):
            solutions += source(cell.source)
            parts.append("".join(piece.html for piece in results(cell)))
        else:
            folded = cell.metadata.get("jupyter", {}).get("source_hidden")
            if not folded and "begin_lecture()" not in cell.source:
                parts += [piece.html for piece in source(cell.source)]
            parts += [piece.html for piece in results(cell)]
    shown = [text(part, links) if isinstance(part, str) else part.html for part in solutions]
    return "\n".join([*parts, "<h2>Solutions</h2>" if shown else "", *shown])


def numbered(made: str, name: str) -> tuple[str, list[tuple[str, str]]]:
    """A lecture with a name on each heading of its second level, and those headings."""
    found: list[tuple[str, str]] = []

    def target(heading: re.Match) -> str:
        found.append((f"{name}-{len(found) + 1}", heading[1]))
        return f'<h2 id="{found[-1][0]}">{heading[1]}</h2>'

    return re.sub(r"<h2>(.*?)</h2>", target, made, flags=re.DOTALL), found


def page(title: str, inside: str) -> str:
    """A page for the printer."""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{inside}\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def printed(title: str, inside: str, target: Path) -> Path:
    """Print HTML as PDF."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"a browser prints the PDF, and none of {', '.join(BROWSERS)} is on the PATH")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-pdf-header-footer"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "page.html")
        file.write_text(page(title, inside), encoding="utf-8")
        wanted = [f"--user-data-dir={folder}/profile", "--generate-pdf-document-outline", f"--print-to-pdf={target}"]
        answer = subprocess.run([browser, *flags, *wanted, file.as_uri()], capture_output=True, text=True, timeout=900)
    if answer.returncode or not target.exists():
        raise RuntimeError(f"{target}: the browser did not print it\n{answer.stderr[-1000:]}")
    return target


def contents(parts: list[tuple[str, str, list]]) -> str:
    """The contents: lectures and their sections."""
    line = '<div class="line{}"><a href="#{to}">{}</a><span class="number" data-to="{to}"></span></div>'.format
    lines = []
    for name, title, sections in parts:
        lines.append(line(" part", title, to=name))
        lines += [line("", words, to=to) for to, words in sections if words not in ("Exercises", "What to remember")]
    return f'<nav id="contents"><h1>Contents</h1>{"".join(lines)}</nav>'


def index(pages: list[str], first: int) -> str:
    """On which pages terms, names of the package and claims stand; pages before the first lecture are left out."""
    from theory.claims import list_claims

    claims, found = set(list_claims()), (defaultdict(set), defaultdict(set), defaultdict(set))
    terms = {term: re.compile(rf"\b{re.escape(term)}s?\b", re.IGNORECASE) for term in re.split(r";\s", TERMS)}
    for number, words in enumerate(pages, 1):
        if number >= first:
            for term, pattern in terms.items():
                if pattern.search(" ".join(words.split())):
                    found[0][term].add(number)
            for name in re.findall(r"\bth\.((?:bounds\.)?[A-Za-z]\w+)", words):
                found[1][f"th.{name}"].add(number)
            for name in re.findall(r"\b[a-z][\w-]*\.[a-z][\w.-]*\b", words):
                if name in claims:
                    found[2][name].add(number)
    shown = []
    for title, entries in zip(("Terms", "Names of the package", "Claims"), found, strict=True):
        shown.append(f"<h2>{title}</h2>")
        for name, numbers in sorted(entries.items(), key=lambda item: item[0].lower()):
            word = name if title == "Terms" else f"<code>{name}</code>"
            shown.append(f"<p>{word}, {ranges(sorted(numbers))}</p>")
    return f'<article id="index"><h1>Index</h1><div class="index">{"".join(shown)}</div></article>'


def ranges(numbers: list[int]) -> str:
    """Page numbers as they stand in an index: 3, 7–9."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def book(made: dict[Path, list], target: Path) -> Path:
    """Print the course; ``made`` are the cells of its lectures."""
    from pypdf import PdfReader

    parts, articles = [], []
    notation = convert(NOTEBOOKS / "notation.md").cells
    for path, cells in [*made.items(), (NOTEBOOKS / "notation.md", notation)]:
        name = f"lecture-{path.name[:2]}" if path in made else "notation"
        inside, sections = numbered(body(cells, links=True), name)
        title = f"{int(path.name[:2])} {read(path).title}" if path in made else "Notation"
        parts.append((name, html.escape(title), sections))
        articles.append(f'<article id="{name}">{inside}</article>')
    front = (
        '<article class="title"><h1>Communication-efficient distributed SGD</h1>'
        f"<p>{len(made)} lectures, each with measurements beside its theorems</p></article>"
    )
    shell = "\n".join([front, contents([*parts, ("index", "Index", [])]), *articles])
    title = "Communication-efficient distributed SGD"
    first = PdfReader(printed(title, shell + '<article id="index"></article>', target))
    at = {
        name.removeprefix("/"): first.get_destination_page_number(place) + 1
        for name, place in first.named_destinations.items()
    }
    pages = [sheet.extract_text() for sheet in first.pages]
    shell = NUMBERED.sub(lambda found: f"{found[0]}{at[found[1]]}", shell)
    return printed(title, shell + index(pages, at[parts[0][0]]), target)


def main(*words: str) -> int:
    """Print the lectures and the book; 1 if a lecture fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", help="lectures, 04 for example; all, and the book, if none is named")
    parser.add_argument("--out", type=Path, default=BOOK, help="folder for the PDF files")
    parser.add_argument("--no-run", action="store_true", help="do not execute the lectures")
    arguments = parser.parse_args(words)
    for number in arguments.numbers:
        if not number.isdecimal() or not lectures(number):
            parser.error(f"lecture: got {number}, allowed: {', '.join(path.name[:2] for path in lectures())}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    made: dict[Path, list] = {}
    failed = 0
    for path in lectures(*arguments.numbers):
        try:
            notebook = convert(path)
            if not arguments.no_run:
                print(f"{path.stem}: is run, which takes a minute or two the first time", flush=True)
                notebook = executed(notebook)
            made[path] = notebook.cells
            print(printed(read(path).title, body(notebook.cells, links=False), arguments.out / f"{path.stem}.pdf"))
        except Exception as error:  # of a cell, or of a kernel that died: the other lectures are printed all the same
            failed = 1
            print(f"{path.stem}: FAILED\n{error}", flush=True)
    if not arguments.numbers and not failed:
        print(book(made, arguments.out / "lectures.pdf"))
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
