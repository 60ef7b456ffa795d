"""Results of claims that the index of sources names, as they were when they were last verified.

A file of JSON, one claim a line, beside the index: verdict, and the numbers of each check.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from ..measure import Interval
from ..reporting.files import RecordError, write_whole

__all__ = ["Kept", "KeptCheck", "read_kept", "write_kept"]


class KeptCheck(NamedTuple):
    """A check: its label, its verdict, and its numbers."""

    label: str
    verdict: str
    interval: Interval
    predicted: float


class Kept(NamedTuple):
    """A claim with its verdict and its checks, the headline first."""

    id: str
    title: str
    statement: str
    note: str
    verdict: str
    checks: list[KeptCheck]


def read_kept(path: str | Path) -> dict[str, Kept]:
    """Read the results, by id.

    Raises
    ------
    RecordError
        If there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise RecordError(f"there are no results of claims {path}: python -m theory.experiment sources --verify")
    found = {}
    for id, (title, statement, note, verdict, checks) in json.loads(path.read_text(encoding="utf-8")).items():
        listed = []
        for label, word, (*numbers, samples), predicted in checks:
            estimate, low, high, level = map(float, numbers)
            listed.append(KeptCheck(label, word, Interval(estimate, low, high, level, int(samples)), float(predicted)))
        found[id] = Kept(id, title, statement, note, verdict, listed)
    return found


def write_kept(path: str | Path, results: Any) -> None:
    """Write these verifications, and keep what the file has of other claims."""
    from ..claims.judgement import judge

    path = Path(path)
    lines = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for v in results:
        checks = [(c.label, judge(c), [str(x) for x in c.interval], str(float(c.predicted))) for c in v.checks]
        lines[v.id] = (v.title, v.statement, v.note, v.verdict, checks)
    body = ",\n".join(f"{json.dumps(id)}: {json.dumps(lines[id], ensure_ascii=False)}" for id in sorted(lines))
    write_whole(path, f"{{\n{body}\n}}\n")
