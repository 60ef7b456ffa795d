"""The lectures as slides: the quick form of `make slides`, one lecture that is not executed, looked at in a browser."""

from __future__ import annotations

import re
import sys

import pytest
from chromium import Chromium
from conftest import ROOT

pytest.importorskip("jupytext")
sys.path.insert(0, str(ROOT / "notebooks"))

import slides  # noqa: E402

LECTURE = "04-sparsify-and-quantize"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The page of one lecture."""
    folder = tmp_path_factory.mktemp("slides")
    assert slides.main("04", "--no-run", "--out", str(folder)) == 0
    return folder / f"{LECTURE}.html"


def test_a_page_has_all_that_it_needs_and_no_solution(made):
    text = made.read_text(encoding="utf-8")
    body = text[text.index('<div class="slides">') : text.index("<script>")]
    assert not re.search(r'(?:src|href)="(?:https?:)?//(?!www|doi|arxiv)', text) and "@import" not in text
    assert body.count("<section>") == body.count("</section>") > 30
    assert "What to remember" in body and "Exercise 1" not in body and "saving(v)" not in body
    assert "$" not in re.sub(r"<pre.*?</pre>|<code>.*?</code>", "", body, flags=re.DOTALL)  # formulas are typeset
    assert "draw(" not in body and "begin_lecture" not in body and "<math" in body
    assert 'href="05-levels-and-codes.html"' in body


def test_results_and_figures_are_on_slides_and_bars_are_not():
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

    picture = new_output("display_data", {"image/png": "iVBORw0KGgo=\n", "text/plain": "<Image>"})
    bar = new_output("display_data", {"text/html": "<small>compiling</small>", "text/plain": "compiling"})
    text = new_output("stream", name="stdout", text="p = 0.5 < 1\n")
    cells = [new_markdown_cell("# One\n\n## Two\n\nWords."), new_code_cell("f(1)", outputs=[bar, text, picture])]
    page = slides.page("One", cells)
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in page and "p = 0.5 &lt; 1" in page and "compiling" not in page
    cells.append(new_markdown_cell("What it shows. " * 40 + "\n\n### The picture\n\nMore."))
    columns = slides.slides(slides.pieces(cells))
    (shown,) = [slide for slide in columns[0] if "<img" in slide]
    assert "What it shows" in shown and "The picture" not in "".join(columns[0])  # with its caption, under the section
    assert [len(column) for column in columns] == [3] and all("Two" in slide for slide in columns[0])
    wrong = new_code_cell("1/0", outputs=[new_output("error", ename="ZeroDivisionError", evalue="by zero")])
    with pytest.raises(RuntimeError, match="ZeroDivisionError: by zero"):
        slides.page("One", [wrong])


def test_long_code_is_divided_between_statements_and_nothing_is_lost():
    lines = [line for k in range(30) for line in (f"def f{k}():", f"    return {k}")]
    parts = list(slides.divided(lines, 20))
    assert [begin for begin, _, _ in parts] == [0, *(end for _, end, _ in parts[:-1])] and parts[-1][1] == 60
    assert all(high <= 20 and lines[begin].startswith("def") for begin, _, high in parts)
    assert slides.is_check("for x in y:\n    assert x") and not slides.is_check("print(1)")


def test_slides_fit_the_screen_and_ask_no_network(made, tmp_path):
    with Chromium(tmp_path) as browser:
        browser.size(1280, 720)
        browser.open(made.as_uri())
        assert browser.complaints() == []
        count = browser.run("Reveal.getTotalSlides()")
        assert count > 30
        for _ in range(count):
            right, low, zoom = browser.run(
                "(s => ['right', 'bottom'].map(end => "
                "Math.max(...[...s.children].map(c => c.getBoundingClientRect()[end])))"
                ".concat(Number(s.style.zoom || 1)))(Reveal.getCurrentSlide())"
            )
            assert right <= 1281 and low <= 721 and zoom > 0.85
            browser.run("Reveal.next()")
        assert browser.run("Reveal.isLastSlide()")
        assert all(address.startswith(("file:", "data:")) for address in browser.requests())
