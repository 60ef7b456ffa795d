"""The table of gradients and messages: variance and diversity at both ends of a run, and what its compressor added."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..plots.text import mean_text, number, text_table
from ..reporting.terminal import line_width

HEAD = (
    ("", "sigma^2", "B_D", "largest", "batch", "error of a message", "", ""),
    ("method", "at the end", "at the end", "batch", "used", "measured", "stated", ""),
)


def gradient_numbers(problem: Any, x: ArrayLike, comm: Any = None) -> dict:
    """sigma^2, B_D and the largest batch without loss at a point, if they are numbers; every rank takes its rows."""
    from ..bounds import largest_batch
    from ..problems import batch_bound, gradient_variance

    bound, variance = batch_bound(problem, x, comm), gradient_variance(problem, x, comm)
    if not math.isfinite(variance):  # far out, where squares overflow
        return {}
    return {"variance": variance, "B_D": bound, "largest_batch": largest_batch(bound)}


def compression_ratio(result: Any) -> float:
    """The sum of ||p - Q(p)||^2 over that of ||p||^2, over the messages that were measured; NaN if none were."""
    found = result.compression_error[1:]
    whole = float(np.nansum(found["vector"]))  # no message, no number
    return float(np.nansum(found["error"])) / whole if whole > 0.0 else math.nan


def stated_ratio(compressor: Any, d: int) -> tuple[float, str]:
    """The largest ratio that a compressor states, in expectation: omega if it is unbiased, else 1 - delta."""
    from ..compressors import delta, omega

    for name, ratio in (("omega", lambda: omega(compressor, d)), ("1 - delta", lambda: 1.0 - delta(compressor, d))):
        try:
            return float(ratio()), name
        except TypeError:
            continue
    return math.nan, ""


def variance_text(record: Any) -> str:
    """The table; empty for a record without these numbers."""
    from .records import repetitions

    groups = [[record.results[label] for label in labels] for labels in repetitions(record).values()]
    groups = [runs for runs in groups if all(run.get("at_end") for run in runs)]
    start = record.experiment.get("at_start")
    if not groups or not start:
        return ""
    rows = [
        [
            run["title"],
            *(mean_text([one["at_end"][name] for one in runs], number) for name in ("variance", "B_D")),
            mean_text([one["at_end"]["largest_batch"] for one in runs], number),
            f"{run['workers'] * run['batch']:,}",
            mean_text([one["compression_measured"] for one in runs], number),
            number(run["compression_stated"]),
            run["compression_constant"],
        ]
        for runs in groups
        for run in runs[:1]
    ]
    times = max(map(len, groups))
    foot = [
        f"at the start: sigma^2 = {number(start['variance'])}, B_D = {number(start['B_D'])}, largest batch = "
        f"{number(start['largest_batch'])}; sigma^2: (1/n) sum ||grad f_i - grad f||^2; B_D: M^2/||grad f||^2; "
        "largest batch: B_D + 1, up to which mini-batch SGD loses at most a factor of 1.5 (bounds.largest_batch)",
        "error of a message: the sum of ||p - Q(p)||^2 over that of ||p||^2, over all workers' messages in the rounds "
        "before the evaluations, beside its bound in expectation, the compressor's omega or 1 - delta",
    ]
    if times > 1:
        foot.insert(0, f"means over {times} runs ± half of their 95 % intervals")
    lines = [text_table(HEAD, rows, left=(0, 7))]
    for text in foot:
        lines += textwrap.wrap(text, line_width(), subsequent_indent="    ")
    return "\n".join(lines)
