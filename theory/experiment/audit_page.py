"""The page of the audits: its tables and its figure, between two marks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

TIMED = 100_000  # coordinates of the vectors that are timed
BEGIN, END = "<!-- begin: python -m theory.experiment audit -->", "<!-- end: python -m theory.experiment audit -->"
FIRST = f"# Compressors, audited\n\n{BEGIN}\n{END}\n"  # a page that does not exist yet
BODY = """
### What they do

d = {d:,}, inputs of mean square 1: {inputs}; {samples} samples for each.

{law}

### What they cost

The Gaussian vector; times at d = {timed:,}.

{wire}

### Variance against bits

![{alt}]({figure})
"""


ALT = (
    "Relative squared error against bits a coordinate, both axes logarithmic: one point for each compressor, and two "
    "lines below which no unbiased one can be"
)


def _markdown(head: Any, rows: Any) -> str:
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    names = [f"`{row[0]}`" for row in rows]
    body = [f"| {' | '.join([name, *row[1:]])} |" for name, row in zip(names, escaped, strict=True)]
    return "\n".join([f"| {' | '.join(head)} |", f"|{'|'.join(['---', *['---:'] * (len(head) - 1)])}|", *body])


def page(table: Any, figure: str, markdown: str, text: str = FIRST) -> str:
    """The page ``text`` with the tables and the figure between its marks.

    Raises
    ------
    ValueError
        If the page has no marks.
    """
    from ..measure.audit_tables import law_table, wire_table

    if BEGIN not in text or END not in text.partition(BEGIN)[2]:
        raise ValueError(
            f"{markdown}: got a page without marks, allowed: a new file, or one with the lines\n{BEGIN}\n{END}"
        )
    link = os.path.relpath(Path(figure).resolve(), Path(markdown).resolve().parent) + ".png"
    samples = sorted({one.samples for one in table})
    body = BODY.format(
        d=table[0].d,
        inputs=", ".join(row.name for row in table[0].rows),
        timed=TIMED,
        alt=ALT,
        samples=f"{samples[0]:,}" + (f" to {samples[-1]:,}" if len(samples) > 1 else ""),
        law=_markdown(*law_table(table)),
        wire=_markdown(*wire_table(table)),
        figure=Path(link).as_posix(),
    )
    before, _, after = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{body}\n{END}{after.partition(END)[2]}"
