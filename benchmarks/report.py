"""The table and the page that holds it."""

from __future__ import annotations

import datetime
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

import numpy as np

from theory.reporting.files import write_whole

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "mpi4py")
HEAD_COMPILE = ("from an empty cache", "", "range", "target", "", "before")
HEAD = ("what", "in units of", "ratio", "range", "target", "", "times")


def number(x: float) -> str:
    """Three digits, without an exponent; a dash for what was not measured."""
    if np.isnan(x):
        return "–"
    return f"{x:.0f}" if abs(x) >= 100 else f"{x:.3g}"


def cells(row) -> tuple[str, ...]:
    """What a row shows."""
    values = np.asarray(row.values)
    spread = f"{number(values.min())} to {number(values.max())}" if values.size > 1 else ""
    target = "" if row.target is None else f"{row.target[0]} {number(row.target[1])}{row.unit}"
    met = "" if row.met is None else ("met" if row.met else "**not met**")
    return row.what, row.against, f"{number(np.median(values))}{row.unit}", spread, target, met, row.times


def table(rows) -> str:
    """A Markdown table that can be read as it stands, too."""
    return _table([HEAD, *map(cells, rows)])


def compile_table(rows) -> str:
    """The same for what compiles: nothing is in units of anything."""
    return _table([HEAD_COMPILE, *((what, *others) for what, _, *others in map(cells, rows))])


def plain_table(lines) -> str:
    """The same for lines of texts, the first of which is the head."""
    return _table(lines)


def _table(lines) -> str:
    widths = [max(3, *(len(line[k]) for line in lines)) for k in range(len(lines[0]))]
    text = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(text)


def processor() -> str:
    """The model of the processor."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        return re.sub(r"\((R|TM)\)", "", found.group(1)).strip()
    except (OSError, AttributeError):
        return platform.processor() or platform.machine()


def machine() -> str:
    """Where and with what the table was measured, without names or paths."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}; Python "
        f"{platform.python_version()}, {versions}; {datetime.date.today().isoformat()}"
    )


def write(text: str, page: Path = PAGE, name: str = "") -> None:
    """Put the text between the marks of a command of this name in the page."""
    begin, end = (f"<!-- {edge}: {f'python -m benchmarks {name}'.strip()} -->" for edge in ("begin", "end"))
    old = page.read_text(encoding="utf-8")
    before, rest = old.split(begin, 1)
    _, after = rest.split(end, 1)
    write_whole(page, f"{before}{begin}\n\n{text}\n\n{end}{after}")
