"""The report of a study: rows, tables, statements with a verdict, and a figure; as text and as a page."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core.result import spread
from ...plots.appearance import number, text_table
from ...reporting.files import ConfigurationError
from ...reporting.progress import WIDTH
from .verdicts import Statement

CASE = re.compile(r"; (?![^()]*\))")  # between two cases: a semicolon that is not in brackets
OURS = "our comparison"  # the source of a statement that neither a lecture nor a paper makes


class Table(NamedTuple):
    """A title, the names of the columns, and rows of as many strings."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


class Study(NamedTuple):
    """One study.

    Attributes
    ----------
    name, title : str
    setting : str
        What was run, in one paragraph.
    rows : dict of str to list of NamedTuple
        All measured numbers, by table.
    tables : list of Table
    statements : list of :class:`~.verdicts.Statement`
    draw : callable
        ``draw() -> matplotlib.figure.Figure``.
    alt : str
        Alternative text of the figure.
    ticks : tuple of Table
        On the page, what the statements say, case by case: the figure and these come first, then the other tables.
    """

    name: str
    title: str
    setting: str
    rows: dict[str, list[Any]]
    tables: list[Table]
    statements: list[Statement]
    draw: Callable
    alt: str
    ticks: tuple[Table, ...] = ()


def line(cells: str) -> tuple[str, ...]:
    """A row of a table, as it is read: cells between bars with blanks.

    Examples
    --------
    >>> line(f"top-k | {0.25:.0%} | ± {1e-3:g}")
    ('top-k', '25%', '± 0.001')
    """
    return tuple(cells.split(" | "))


def interval(samples, form: Callable[[float], str] = number) -> str:
    """The mean over the seeds, and ± half of its 95 % interval where there are several and none diverged.

    Examples
    --------
    >>> interval([1.0, 2.0, 3.0]), interval([1.0])  # 4.303 / sqrt(3)
    ('2 ± 2.48', '1')
    """
    found = spread(samples)
    return form(found.mean) + ("" if math.isnan(found.half) else f" ± {form(found.half)}")


def checked(study: Any) -> Study:
    """The study that a ``report`` has returned, if its tables and statements can be shown.

    Raises
    ------
    ConfigurationError
        With what it is that cannot: a row of a table, or a trial.
    """
    if not isinstance(study, Study):
        raise ConfigurationError(f"report returned a {type(study).__name__}, allowed: a Study")
    for table in (*study.tables, *study.ticks):
        for row in table.rows:
            wrong = [cell for cell in row if not isinstance(cell, str)]
            if wrong or len(row) != len(table.head):
                what = f"a {type(wrong[0]).__name__} ({wrong[0]!r})" if wrong else f"{len(row)} cells, {tuple(row)}"
                allowed = f"{len(table.head)} strings, as there are columns"
                raise ConfigurationError(f"table {table.title!r}: got a row with {what}, allowed: {allowed}")
    for said in study.statements:
        try:
            said.verdict  # noqa: B018  # of its trials
        except ValueError as error:
            raise ConfigurationError(f"statement {said.id!r}: {error}") from None
    return study


def drawn(study: Study) -> Any:
    """The study's figure.

    Raises
    ------
    ConfigurationError
        If ``draw`` returns anything else, such as a figure with its axes.
    """
    figure = study.draw()
    if not hasattr(figure, "savefig"):
        raise ConfigurationError(f"{study.name}: draw returned a {type(figure).__name__}, allowed: a figure alone")
    return figure


def _source(said: Statement) -> str:
    return f" ({said.source})" if said.source else ""


def as_text(study: Study) -> str:
    """The study as text for a terminal."""
    parts = [f"{study.name}: {study.title}", textwrap.fill(study.setting, WIDTH)]
    parts += [f"{table.title}\n\n{text_table([table.head], table.rows)}" for table in study.tables]
    for said in study.statements:
        line = f'{said.verdict}{_source(said)}: "{said.text}" {said.numbers}'
        lines = textwrap.wrap(line, WIDTH, subsequent_indent="    ")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _table(table: Table) -> str:
    rule = "|".join(["---", *["---:"] * (len(table.head) - 1)])
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in table.rows]
    return "\n".join([f"**{table.title}**", "", f"| {' | '.join(table.head)} |", f"|{rule}|", *lines])


def _cases(numbers: str) -> str:
    """The numbers of a statement; of several cases each has a line of its own."""
    return "".join(f"\n  - {case}" for case in cases) if len(cases := CASE.split(numbers)) > 2 else f" {numbers}"


def as_markdown(study: Study, figure: str) -> str:
    """What the page of a study shows; ``figure`` is the link to its picture."""
    tables, picture = [_table(table) for table in study.tables], f"![{study.alt}]({figure})"
    if study.ticks:
        return "\n\n".join([picture, *(_table(table) for table in study.ticks), study.setting, *tables])
    said = "\n".join(f"- **{s.verdict}**{_source(s)}: “{s.text}”{_cases(s.numbers)}" for s in study.statements)
    return "\n\n".join([study.setting, *tables, picture, said])


def put_below_mark(page: str, study: Study, body: str) -> str:
    """The page of a study: its title and what was written by hand above the mark, and ``body`` below it.

    Examples
    --------
    >>> study = Study("spectrum", "Spectra", "", {}, [], [], None, "")
    >>> page = put_below_mark("", study, "new")
    >>> put_below_mark(page, study, "newer") == page.replace("new", "newer")
    True
    """
    mark = f"<!-- below: python -m theory.experiment figures study-{study.name} --markdown docs/studies -->"
    above = page.partition(mark)[0].strip() or f"# {study.title}"
    return f"{above}\n\n{mark}\n\n{body}\n"
