"""Audits as text: a full report for one compressor, two tables for several."""

from __future__ import annotations

import math
import textwrap
from typing import Any

from ..reporting.progress import columns_that_fit, line_width

NO_MESSAGES = (
    "a function has no format of its own: it is sent in full precision (add-a-compressor says how to give it one)"
)

UNLIMITED = 10**6  # columns of a file


def name_of(c: Any) -> str:
    """A setting as a string, without fields that have their default value.

    Examples
    --------
    >>> from theory import QSGD, Bucketed
    >>> name_of(Bucketed(QSGD(7), 16))
    'Bucketed(QSGD(7), 16)'
    """
    if callable(getattr(c, "function", None)):
        return repr(c)
    default, parts, skipped = getattr(c, "_field_defaults", {}), [], False
    for name, value in zip(c._fields, c, strict=True):
        if name in default and type(default[name]) is type(value) and default[name] == value:
            skipped = True
            continue
        text = name_of(value) if hasattr(value, "_fields") else f"{value:g}" if isinstance(value, float) else str(value)
        parts.append(f"{name}={text}" if skipped or isinstance(value, bool) else text)
    return f"{type(c).__name__}({', '.join(parts)})" if parts else type(c).__name__


def _number(value: Any, digits: int = 4) -> str:
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.{digits}g}"


def _two(value: float) -> str:
    """Format a time with two digits and no exponent."""
    return f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"


def _z(value: float) -> str:
    return "inf" if math.isinf(value) else f"{value:.1f}" if abs(value) < 1000 else f"{value:.0e}"


def lay_out(head: Any, rows: Any, left: Any = (0,)) -> str:
    """Align the columns, with a line below the head; those that do not fit the terminal stand below the others."""
    rows = [tuple(head), *rows]
    left = {j % len(head) for j in left}
    widths = [max(len(row[j]) for row in rows) for j in range(len(head))]
    gap, blocks, parts = *columns_that_fit(widths, line_width(UNLIMITED)), []
    for columns in blocks:
        lines = [
            (" " * gap)
            .join(row[j].ljust(widths[j]) if j in left else row[j].rjust(widths[j]) for j in columns)
            .rstrip()
            for row in rows
        ]
        parts.append("\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]]))
    return "\n\n".join(parts)


def _interval(interval: Any, at: float) -> str:
    """An estimate, printed as ``at``, with the half width of its interval, in two digits."""
    half = interval.half
    if not half > 1e-6 * abs(interval.estimate):
        return _number(at)
    digits = max(0, 1 - math.floor(math.log10(half)))
    return f"{at:.{digits}f} ± {half:.{digits}f}"


def _law(audit: Any) -> tuple[str, float | None, float, float]:
    """The factor (omega, delta, or the error if neither is stated): stated, measured, and largest found."""
    measured, found = audit.measured.error.estimate, audit.worst.error.estimate
    if audit.omega is not None:
        return "ω", audit.omega, measured, found
    if audit.delta is not None:
        return "δ", audit.delta, 1.0 - measured, 1.0 - found
    if one_is_function(audit):  # what its factor would be
        return ("ω", None, measured, found) if audit.unbiased else ("δ", None, 1.0 - measured, 1.0 - found)
    return "error", None, measured, found


def one_is_function(audit: Any) -> bool:
    """Whether it is the audit of a Python function, which has no messages of its own."""
    return audit.wire is None


def law_table(audits: Any) -> Any:
    """Head and rows: bias, closed form, measured, worst found, verdict."""
    head = ("compressor", "unbiased", "z", "", "stated", "measured", "on", "worst found", "from", "verdict")
    rows = []
    for one in audits:
        symbol, stated, measured, found = _law(one)
        verdict = one.verdict if one.ok else "; ".join(fault.split(" (")[0] for fault in one.faults)
        rows.append(
            (
                name_of(one.compressor),
                "yes" if one.unbiased else "no",
                _z(one.z),
                symbol,
                _number(stated),
                _interval(one.measured.error, measured),
                one.measured.name,
                _interval(one.worst.error, found),
                one.worst.where,
                verdict,
            )
        )
    return head, rows


def wire_table(audits: Any) -> Any:
    """Head and rows: non-zeros, bits a coordinate, frame, time."""
    head = (
        "compressor",
        "non-zeros",
        "formula",
        "bits",
        "formula",
        "entropy",
        "zlib",
        "frame",
        "encode ns",
        "decode ns",
        "x memcpy",
    )
    rows = []
    for one in audits:
        wire, timing = one.wire, one.timing
        if one_is_function(one):
            rows.append((name_of(one.compressor), _number(one.rows[0].nonzeros.estimate), *["-"] * (len(head) - 2)))
            continue
        numbers = (wire.nonzeros, wire.nonzeros_stated, wire.coded.estimate, wire.stated, wire.entropy, wire.zlib)
        times = f"{_two(timing.encode / timing.copy)} + {_two(timing.decode / timing.copy)}"
        rows.append(
            (
                name_of(one.compressor),
                *map(_number, numbers),
                str(wire.frame),
                _two(timing.encode),
                _two(timing.decode),
                times,
            )
        )
    return head, rows


def sheet(one: Any) -> str:
    """The full report on one compressor."""
    symbol, stated, measured, found = _law(one)
    wire, timing = one.wire, one.timing
    name = {"ω": "omega", "δ": "delta"}.get(symbol, symbol)
    bias = "no input shows a bias" if one.unbiased else "biased"
    tight = f", {found / stated:.3g} of the closed form" if symbol == "ω" and stated else ""
    lines = [f"{name_of(one.compressor)}, d = {one.d:,}, {one.samples:,} samples an input, seed {one.seed}"]
    if one.state:
        lines[0] += f", state of {one.state:,} numbers (afresh each time)"
    lines += [
        f"verdict      {one.verdict}",
        f"bias         {bias}: largest z = {_z(one.z)} over {len(one.rows)} inputs",
        f"{name:<13}stated {_number(stated, 6)}, measured {_number(measured, 6)} ({one.measured.name}), "
        f"worst found {_number(found, 6)} ({one.worst.where}; {one.worst.evaluations:,} vectors tried){tight}",
        *(_messages(wire, timing) if wire else [f"messages     {NO_MESSAGES}"]),
        "",
    ]
    head = ("input", "z of bias", "relative squared error", "non-zeros", "formula")
    rows = [
        (row.name, _z(row.z), str(row.error), _number(row.nonzeros.estimate), _number(row.nonzeros_stated))
        for row in one.rows
    ]
    rows.append((f"worst: {one.worst.where}", "", str(one.worst.error), "", ""))
    shown = [textwrap.fill(line, line_width(UNLIMITED), subsequent_indent=" " * 13) for line in lines]
    return "\n".join([*shown, lay_out(head, rows, left=(0, 2))])


def _messages(wire: Any, timing: Any) -> list[str]:
    """The lines of a sheet on messages."""
    return [
        f"non-zeros    {_number(wire.nonzeros)}, formula {_number(wire.nonzeros_stated)} ({wire.input})",
        f"payload      {_number(wire.coded.estimate)} bits a coordinate, formula {_number(wire.stated)}, "
        f"entropy {_number(wire.entropy)}, zlib {_number(wire.zlib)} ({wire.input})",
        f"frame        {wire.frame} bytes",
        f"time         encode {_two(timing.encode)}, decode {_two(timing.decode)}, memcpy {_two(timing.copy)} ns "
        f"a coordinate (d = {timing.d:,}): {_two(timing.encode / timing.copy)} and "
        f"{_two(timing.decode / timing.copy)} times memcpy",
    ]
