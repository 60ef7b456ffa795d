"""Error of one message against its bits: EDEN and DRIVE, which rotate first, beside QSGD, NUQSGD and natural.

Every error is measured and has a closed form: at the vector itself for random rounding, and for all vectors where a
rotation comes first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from .. import bounds
from ..compressors import NUQSGD, QSGD, Bucketed, Natural, eden, encode
from ..core.random import key
from ..measure import Interval, input_vectors, mean_interval, moments
from ..plots.figure_style import COLUMN, colours
from ..plots.text import number
from ..reporting.progress import track
from ..wire.frame import open_frame
from .shared.entry_keys import slug
from .shared.panels import canvas
from .shared.report import OURS, Study, Table, line
from .shared.verdicts import Statement, below, between

D = 4096
BUCKET = 512
BITS = (1, 2, 3, 4)
VECTORS = ("gaussian", "lognormal", "rcv1 near x*", "softmax at 0")
UNBIASED, BEST = "EDEN", "EDEN, best scale"
NEAR = 0.05  # relative distance at which an error still counts as the closed form's


class Measured(NamedTuple):
    """One compressor at one vector.

    Attributes
    ----------
    vector, method : str
    width : int
        Bits of a level.
    bits : float
        Payload of a message, per coordinate.
    error : float
        Mean of ||Q(v) - v||^2 / ||v||^2.
    low, high : float
        Its interval.
    predicted : float
        The closed form.
    """

    vector: str
    method: str
    width: int
    bits: float
    error: float
    low: float
    high: float
    predicted: float


def _of_buckets(v, variance: Callable) -> float:
    """Relative variance of a quantizer in buckets, from that of one bucket."""
    return sum(variance(piece) for piece in np.split(v, v.size // BUCKET)) / float(v @ v)


def methods(width: int) -> dict[str, tuple[NamedTuple, Callable]]:
    """By name, the compressors whose levels take ``width`` bits, with the closed forms of their errors at a vector."""
    found: dict[str, tuple[NamedTuple, Callable]] = {
        UNBIASED: (eden(width), lambda v: bounds.eden_variance(width)),
        BEST: (eden(width, unbiased=False), lambda v: bounds.lloyd_max_distortion(width)),
    }
    if width >= 2:
        s = 2 ** (width - 1) - 1
        for name, norm in (("QSGD", 2.0), ("QSGDinf", math.inf)):
            variance = partial(bounds.qsgd_variance_exact, s=s, norm=norm)
            found[name] = Bucketed(QSGD(s, norm), BUCKET), partial(_of_buckets, variance=variance)
        variance = partial(bounds.chord_variance, levels=bounds.geometric_levels(s - 1))
        found["NUQSGD"] = Bucketed(NUQSGD(s - 1), BUCKET), partial(_of_buckets, variance=variance)
    return found


def errors_of(vectors, samples: int = 64, seed: int = 0) -> list[Measured]:
    """Measure every method at every vector.

    Parameters
    ----------
    vectors : dict of str to ndarray
        Their length is a power of two and a multiple of the buckets' size.
    samples : int
    seed : int

    Returns
    -------
    list of Measured
    """
    rows = []
    for place, v in track(vectors.items(), "vectors"):
        chosen = [(name, width, *pair) for width in BITS for name, pair in methods(width).items()]
        chosen.append(("natural", 9, Natural(), lambda v: bounds.natural_variance_exact(v) / (v @ v)))
        for name, width, c, predicted in chosen:
            found = moments(c, v, samples, seed=int(key(seed, place, name, width)), wire_dtype=np.float32)
            error = mean_interval(found.error / found.squared_norm, 0.99, certain=True)
            bits = open_frame(encode(c, v, 0)).payload_bits / v.size
            rows.append(Measured(place, name, width, bits, *error[:3], float(predicted(v))))
    return rows


def _pick(rows, method: str, width: int) -> dict[str, Measured]:
    return {row.vector: row for row in rows if row.method == method and row.width == width}


def _interval(row: Measured) -> Interval:
    return Interval(row.error, row.low, row.high, 0.99)


def statements(rows) -> list[Statement]:
    """What is said, by the intervals of the errors."""
    hits = [row for row in rows if row.method in (UNBIASED, BEST)]
    near = Statement(
        "rotation",
        "after random signs times Hadamard the error is that after a uniform rotation, whatever the vector.",
        [between(_interval(row), (1.0 - NEAR) * row.predicted, (1.0 + NEAR) * row.predicted) for row in hits],
        source=OURS,
    )
    far = max(hits, key=lambda row: abs(row.error / row.predicted - 1.0))
    said = [
        near._replace(
            said=f"Within {NEAR:.0%} in {near.count()} of {len(hits)} cases; farthest on {far.vector}, {far.method} "
            f"with {far.width} bits: {number(far.error)} against {number(far.predicted)}."
        )
    ]
    for other in ("QSGD", "QSGDinf", "NUQSGD"):
        pairs = [
            (ours, theirs)
            for width in BITS[1:]
            for ours, theirs in zip(
                _pick(rows, UNBIASED, width).values(), _pick(rows, other, width).values(), strict=True
            )
        ]
        ratios = [theirs.error / ours.error for ours, theirs in pairs]
        said.append(
            Statement(
                f"below-{slug(other)}",
                f"at equal bits EDEN has less error than {other}.",
                [below(_interval(ours), _interval(theirs)) for ours, theirs in pairs],
                f"The error of {other} is {number(min(ratios))} to {number(max(ratios))} times as large.",
                OURS,
            )
        )
    bound, ours = bounds.turboquant_prod_variance(3), list(_pick(rows, UNBIASED, 2).values())
    least, most = (number(pick(row.error for row in ours)) for pick in (min, max))
    said.append(
        Statement(
            "below-turboquant",
            "EDEN with 2 bits has less error than the unbiased TurboQuant with 3 has on long vectors.",
            [below(_interval(row), bound) for row in ours],
            f"{least} to {most} against {number(bound)}, the closed form.",
            OURS,
        )
    )
    return said


def draw(rows):
    """Errors against bits: measured points on lines of closed forms, one pair of axes for each vector."""
    places = list(dict.fromkeys(row.vector for row in rows))
    names, cycle, marks = list(dict.fromkeys(row.method for row in rows)), colours(), "os^DvP"
    lines = (len(places) + 1) // 2
    with canvas(lines, 2, 0.95 * COLUMN * lines) as (figure, grid):
        for axes, place in zip(grid.flat, places, strict=False):
            for n, name in enumerate(names):
                mine = [row for row in rows if row.vector == place and row.method == name]
                x, error = [row.bits for row in mine], [row.error for row in mine]
                axes.plot(x, [row.predicted for row in mine], color=cycle[n], marker="", linestyle="-")
                axes.plot(x, error, color=cycle[n], marker=marks[n], linestyle="", markerfacecolor="none", label=name)
            widths = [1, 2, 3, 4, 5]
            prod = [bounds.turboquant_prod_variance(width) for width in widths]
            axes.plot(widths, prod, color="0.5", marker="", linestyle=(0, (1, 1)), label="TurboQuant (theory)")
            axes.set(yscale="log", title=place, xlabel="bits a coordinate", ylabel=r"$\mathrm{E}\|Q(v)-v\|^2/\|v\|^2$")
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def collect(quick: bool, seed: int) -> dict:
    """Error and bits of a message, for five quantizers with 1 to 4 bits, and natural compression."""
    d, places, samples = (1024, VECTORS[:2], 16) if quick else (D, VECTORS, 256)
    return {"rows": errors_of(input_vectors(d, places, seed), samples, seed), "d": d, "samples": samples}


def report(rows, d: int, samples: int) -> Study:
    """The study of these errors."""
    cells = [
        line(
            f"{row.vector}: {row.method} | {row.width} | {row.bits:.3f} | "
            f"{number(row.error)} [{number(row.low)}, {number(row.high)}] | {number(row.predicted)}"
        )
        for row in rows
    ]
    setting = (
        f"One message for a vector of length d = {d:,}, float32 on the wire. EDEN: random signs times Hadamard's "
        "matrix, Lloyd-Max levels, and one scale, ||v||^2/<Rv, q> or the best one; with one bit it is DRIVE. QSGD "
        f"(2-norm), QSGDinf and NUQSGD in buckets of {BUCKET}, every level in the same number of bits. Bits are those "
        f"of a payload, the key of the rotation and the scales included. Errors are means over {samples} messages, "
        "with intervals at 99 %. Closed forms: for random rounding at the vector itself, for EDEN the limit for long "
        "vectors after a uniform rotation. The claims `rotation.eden.limit` and `rotation.eden.turboquant` check the "
        "latter, with mutants."
    )
    return Study(
        "error-and-bits",
        "Error against bits, with and without a rotation",
        setting,
        {"errors": rows},
        [Table("Error of one message", ("vector: method", "width", "bits", "error", "closed form"), cells)],
        statements(rows),
        lambda: draw(rows),
        "Error against bits, logarithmic: EDEN and DRIVE with 1 to 4 bits lie on nearly the same lines for every "
        "vector, below QSGD, NUQSGD and the line of the unbiased TurboQuant",
    )
