"""Rewrite the comparison of RCV1 and its twin in the documentation: ``python -m theory.data.twin_report [PATH]``.

The table goes between two marks in ``docs/data.md``.  ``python -m theory.experiment figures rcv1-like`` draws the
figure from what ``outlines`` returns.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .dataset import DataError, Dataset
from .description import RANKS, REAL, Statistics, describe
from .load import load_data

__all__ = ["main", "outlines", "table", "write_table"]

FILE = "rcv1_subsets_binary.svm.bz2"
BEGIN, END = "<!-- twin_report: begin -->", "<!-- twin_report: end -->"


def _rows(s: Statistics) -> Any:
    """(what, text, number) of every line of the table; the ratio is taken of the numbers."""
    value: float
    for what, value in (("rows n", s.n), ("columns d", s.d), ("labels +1", s.positive), ("labels -1", s.negative)):
        yield what, f"{value:,}", value
    yield "non-zeros", f"{s.nnz:,}", s.nnz
    for level, value in zip(("least", "5 %", "25 %", "median", "75 %", "95 %", "most"), s.nnz_quantiles, strict=True):
        yield f"non-zeros of a row: {level}", f"{value}", value
    yield "columns with an entry", f"{s.columns_used:,}", s.columns_used
    for rank, value in zip(RANKS, s.frequencies, strict=True):
        yield f"entries in the column of rank {rank:,}", f"{value:,}", value
    yield "norm of a row: least", f"{s.row_norms[0]:.5f}", s.row_norms[0]
    yield "norm of a row: most", f"{s.row_norms[1]:.5f}", s.row_norms[1]
    for level, value in zip(("5 %", "median", "95 %"), s.value_quantiles, strict=True):
        yield f"value of an entry: {level}", f"{value:.4f}", value
    yield r"$\lVert \frac1n\sum_i a_i \rVert^2$", f"{s.mean_norm2:.5f}", s.mean_norm2
    for k, value in enumerate(s.singular, start=1):
        what = r"$\sigma_{\max}(X)^2/n$" if k == 1 else rf"$\sigma_{k}(X)^2/n$"
        yield what, f"{value:.5f}", value
    yield "$B_D(0)$", f"{s.batch_bound:.1f}", s.batch_bound
    yield r"$f^\star$ at $\lambda = 1/n$", f"{s.optimum:.5f}", s.optimum
    yield r"accuracy at $x^\star$, on the rows it was fitted to", f"{100 * s.train_accuracy:.2f} %", s.train_accuracy
    yield (
        "accuracy on rows held out (20 %, mean of 3 splits)",
        f"{100 * s.held_out_accuracy:.2f} %",
        s.held_out_accuracy,
    )


def table(real: Statistics, twin: Statistics) -> str:
    """The two side by side, as Markdown.

    Parameters
    ----------
    real, twin : Statistics

    Returns
    -------
    str
        With a last column, twin / real.

    Examples
    --------
    >>> from theory.data.description import REAL
    >>> print(table(REAL, REAL).splitlines()[2])
    | rows n | 23,756 | 23,756 | 1.000 |
    """
    lines = ["| | real RCV1 (subsets) | rcv1-like (synthetic) | twin / real |", "|---|---:|---:|---:|"]
    for (what, left, a), (_, right, b) in zip(_rows(real), _rows(twin), strict=True):
        lines.append(f"| {what} | {left} | {right} | {b / a:.3f} |")
    return "\n".join(lines)


def write_table(page: Path, text: str) -> None:
    """Replace the text between the two marks of a page, atomically.

    Parameters
    ----------
    page : Path
    text : str

    Raises
    ------
    DataError
        If the page does not have the marks.
    """
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise DataError(f"{page}: the lines {BEGIN} and {END} are missing; put them where the table belongs")
    part = page.with_name(f".{page.name}.part")
    part.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
    part.replace(page)


def outlines(real: Dataset, twin: Dataset) -> dict:
    """Values of the figure of both: histogram of the non-zeros per row, and column frequencies at some ranks.

    Parameters
    ----------
    real, twin : Dataset

    Returns
    -------
    dict
        ``edges``, ``shares``, ``ranks`` and ``frequencies``, as `theory.plots.rows.draw_rows` takes them.
    """
    both = {"real RCV1 (subsets)": real, twin.name: twin}
    longest = max(np.diff(data.X.indptr).max() for data in both.values())
    edges = np.unique(np.rint(np.geomspace(6, longest + 1, 33)))
    columns = max(data.d for data in both.values())
    ranks = np.unique(np.rint(np.geomspace(1, columns, 400))).astype(np.int64)
    shares, frequencies = {}, {}
    for name, data in both.items():
        shares[name] = np.histogram(np.diff(data.X.indptr), edges)[0] / (data.n * np.diff(np.log(edges)))
        frequency = np.zeros(columns, np.int64)
        frequency[: data.d] = np.sort(np.bincount(data.X.indices, minlength=data.d))[::-1]
        frequencies[name] = frequency[ranks - 1]
    return {"edges": edges, "shares": shares, "ranks": ranks, "frequencies": frequencies}


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of the command line.

    Returns
    -------
    int
    """
    root = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(
        prog="python -m theory.data.twin_report",
        description="Write the table of the comparison of RCV1 and its synthetic twin in the documentation again.",
        epilog=f"example: python -m theory.data.twin_report path/to/{FILE}",
    )
    parser.add_argument("path", nargs="?", metavar="PATH", help=f"the real file (default: {FILE} in $THEORY_DATA)")
    parser.add_argument("--page", type=Path, default=root / "docs" / "data.md", help="the page with the table")
    options = parser.parse_args(arguments)
    path = options.path
    if path is None and "THEORY_DATA" in os.environ:
        path = Path(os.environ["THEORY_DATA"]) / FILE
    try:
        real = None if path is None else load_data(path, n_features=REAL.d)
        twin = load_data("rcv1-like")
        text = table(REAL if real is None else describe(real), describe(twin))
        write_table(options.page, text)
    except (DataError, OSError) as error:
        print(f"twin_report: {error}", file=sys.stderr)
        return 1
    print(text)
    print(f"\nwritten: {options.page}")
    if real is None:
        print("the real file was not given: its column is what was recorded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
