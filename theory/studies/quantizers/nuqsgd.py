"""NUQSGD against QSGD and QSGDinf at equal bits: exact variances on synthetic and real gradients, and training.

The variances are sums of chords, without sampling.  The training has the paper's momentum 0.9, weight decay (here the
l2 term, part of the gradient that is sent), 4 bits and buckets of 8192.  The paper has mini-batches of 128, and
simulates k GPUs by k independent mini-batches, aggregated after quantization; here 128 rows are the batch of a single
worker.  With 8 workers batches are of 32, as in the paper's comparison under small mini-batches, on 8 GPUs.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...cluster import run
from ...compressors import NUQSGD, Bucketed, Identity, qsgd_bits
from ...core import require
from ...core.random import key
from ...data import Dataset
from ...methods import ParallelSGD
from ...methods.schedules import Constant
from ...plots.appearance import COLUMN, number
from ...problems import accuracy, batch_gradient, gradient, lipschitz, logistic, softmax, solve
from ...reporting.progress import track
from ..shared.curves import canvas, looks
from ..shared.problems import digits, iterates, rcv1
from ..shared.report import OURS, Study, Table, interval, line
from ..shared.verdicts import Compare, Statement, below, within

BITS, BUCKET = 4, 8192
FINEST = 119  # levels of NUQSGD that floats can tell apart: with 8 bits there are codes for 126
SWEEP_BITS, SWEEP_BUCKETS = (2, 3, 4, 5, 6), (128, 1024, 8192)
THREE = ("QSGD", "QSGDinf", "NUQSGD")
RELEASED = ("QSGD, no zero", "QSGDinf, no zero", "NUQSGD, no zero")
BATCH, L2, MOMENTUM = 128, 1e-4, 0.9
SEEDS = 10
COMPARABLE = 2.0  # the factor for "comparable" variances
DRAWN = ("Gaussian", "lognormal 1.5", "logistic near x*, batch")
LONGER = 8.0  # on softmax the bound of L is far above the curvature along the run


class Variance(NamedTuple):
    """The exact relative variance of one quantizer at one vector: E||Q(v) - v||^2 / ||v||^2."""

    input: str
    bits: int
    bucket: int
    quantizer: str
    variance: float


class Training(NamedTuple):
    """One method on one problem.

    Attributes
    ----------
    problem : str
    workers, batch : int
    method : str
    bits : float
        Payload bits per coordinate and message.
    variance, loss, accuracy : ndarray, shape (seeds,)
        Exact relative variance of its quantizer at its own mini-batch gradients, mean along the run; f - f* on the
        training part, mean over the last quarter of the run; accuracy on the held-out part, at the end.
    step, gap, noise : ndarray, shape (records,)
        Along the run: step, f - f* and variance, means over seeds.
    """

    problem: str
    workers: int
    batch: int
    method: str
    bits: float
    variance: np.ndarray
    loss: np.ndarray
    accuracy: np.ndarray
    step: np.ndarray
    gap: np.ndarray
    noise: np.ndarray

    @property
    def setting(self) -> str:
        """Problem and workers, as text."""
        return f"{self.problem}, {self.workers} worker{'s' if self.workers > 1 else ''}"


# --- variances --------------------------------------------------------------------------------------------------------


def levels_of(quantizer: str, bits: int, d: int = BUCKET) -> tuple[np.ndarray, float]:
    """Levels and norm of a quantizer with ``bits`` bits per coordinate, sign included.

    Examples
    --------
    >>> levels_of("NUQSGD", 3)
    (array([0.  , 0.25, 0.5 , 1.  ]), 2.0)
    """
    most = 2 ** (bits - 1) - 1  # levels above zero
    norm = math.inf if "inf" in quantizer else 2.0
    if quantizer == "NUQSGD, no zero":
        return bounds.nuqsgd_released_levels(bits), norm
    if quantizer == "NUQSGD, best ratio":
        return bounds.geometric_levels(most - 1, bounds.optimal_ratio(most - 1, d) if most > 1 else 0.5), norm
    if quantizer.startswith("NUQSGD"):
        return bounds.geometric_levels(most - 1), norm
    if quantizer.endswith("no zero"):
        return np.linspace(1.0, 2 * most + 1, most + 1) / (2 * most + 1), norm
    return np.arange(most + 1) / most, norm


def relative_variance(v, levels, norm: float, bucket: int) -> float:
    """E||Q(v) - v||^2 / ||v||^2 for rounding to these levels in buckets, exactly.

    Examples
    --------
    >>> relative_variance(np.array([3.0, 4.0]), [0.0, 1.0], 2.0, bucket=2)  # (3 2 + 4 1) / 25
    0.4
    """
    v = np.asarray(v, float)
    total = sum(bounds.chord_variance(v[j : j + bucket], levels, norm) for j in range(0, v.size, bucket))
    return total / float(v @ v)


def inputs(text: Dataset, pictures: Dataset, seed: int = 0, size: int = 8 * BUCKET) -> dict[str, np.ndarray]:
    """Synthetic vectors with light and heavy tails, and gradients at 0 and near the optimum: full, and of 128 rows."""
    rng = np.random.default_rng(int(key(seed, "nuqsgd", "inputs")))
    found = {
        "Gaussian": rng.standard_normal(size),
        "Laplace": rng.laplace(size=size),
        "Student t3": rng.standard_t(3.0, size),
        "lognormal 1.5": rng.choice([-1.0, 1.0], size) * rng.lognormal(0.0, 1.5, size),
    }
    for name, problem in (("logistic", logistic(text, L2)), ("softmax", softmax(pictures, L2))):
        places = iterates(problem)
        rows = rng.choice(problem.n, BATCH, replace=False)
        for place in ("at 0", "near x*"):
            found[f"{name} {place}"] = gradient(problem, places[place])
            found[f"{name} {place}, batch"] = batch_gradient(problem, rows, places[place])
    return found


def variances(vectors, bits=(BITS,), buckets=(BUCKET,), quantizers=THREE) -> list[Variance]:
    """Exact relative variances of quantizers over vectors, bits and bucket sizes."""
    return [
        Variance(name, b, size, q, relative_variance(v, *levels_of(q, b, min(size, v.size)), size))
        for name, v in vectors.items()
        for b in bits
        for size in buckets
        for q in quantizers
    ]


# --- training ---------------------------------------------------------------------------------------------------------


def compressors(bits: int = BITS, bucket: int = BUCKET) -> dict[str, NamedTuple]:
    """Full precision, and the three quantizers at the same number of bits."""
    uniform = qsgd_bits(bits)
    return {
        "float32": Identity(),
        "QSGD": Bucketed(uniform, bucket),
        "QSGDinf": Bucketed(uniform._replace(norm=math.inf), bucket),
        "NUQSGD": Bucketed(NUQSGD(min(2 ** (bits - 1) - 2, FINEST)), bucket),
    }


def train(
    make, data: Dataset, *, name: str, workers: int, batch: int, steps=400, records=20, seeds=SEEDS, seed=0, length=1.0
) -> list[Training]:
    """Train with each quantizer at the same bits and step size, on 80 % of the rows.

    Parameters
    ----------
    make : callable
        ``make(data, l2)``: :func:`theory.logistic` or :func:`theory.softmax`.
    data : Dataset
    name : str
        Name of the problem in the rows.
    workers, batch : int
    steps, records : int
        Number of rounds, and of those at which variance and loss are recorded.
    seeds : int
    seed : int
    length : float
        The step size is 1 - momentum times this over L, for all methods.

    Returns
    -------
    list of Training
    """
    require(1 <= records <= steps, "records", records, "an integer from 1 to the number of steps")
    part, held_out = data.split(0.8, seed=0)
    problem, test = make(part, L2), make(held_out, L2)
    best = solve(problem, 1e-9).fun
    step = Constant((1.0 - MOMENTUM) * length / lipschitz(problem))
    rng = np.random.default_rng(int(key(seed, "nuqsgd", "rows")))
    drawn = [rng.choice(problem.n, min(batch, problem.n), replace=False) for _ in range(records + 1)]
    rows = []
    for method, compressor in track(compressors().items(), name):
        seen, held, width = [], [], math.nan
        plan = ParallelSGD(compressor, step=step, batch=batch, momentum=MOMENTUM)
        levels: Any = None if method == "float32" else levels_of(method, BITS)
        for r in range(seeds):
            here: list = []

            def watch(intermediate_result, here=here, levels=levels):
                x = intermediate_result.last
                g = batch_gradient(problem, drawn[len(here)], x)
                noise = 0.0 if levels is None else relative_variance(g, levels[0], levels[1], BUCKET)
                here.append((intermediate_result.nit, intermediate_result.fun - best, noise))

            every = max(1, steps // records)
            done = run(plan, problem, workers=workers, steps=steps, seed=seed + r, callback=watch, record_every=every)
            seen.append(np.array(here[: records + 1]))
            held.append(accuracy(test, done.last))
            width = done.history["bits_up"][-1] / (done.history["step"][-1] * problem.d)
        table, late = np.array(seen), max(1, records // 4)
        by_seed = table[:, :, 2].mean(axis=1), table[:, -late:, 1].mean(axis=1), np.array(held)
        curves = table.mean(axis=0).T.astype(np.float32)
        rows.append(Training(name, workers, batch, method, float(width), *by_seed, *curves))
    return rows


def collect(quick: bool, seed: int, data: str | None) -> dict:
    """Variances on synthetic and real gradients, then training at equal bits."""
    text, pictures = rcv1(data, 2000 if quick else None), digits()
    vectors = inputs(text, pictures, seed, (2 if quick else 8) * BUCKET)
    names = (*THREE, "NUQSGD, best ratio", *RELEASED)
    rows = variances(vectors, quantizers=names)
    sweep = variances(vectors, (2, 4, 6) if quick else SWEEP_BITS, SWEEP_BUCKETS[-2:] if quick else SWEEP_BUCKETS)
    options = {"steps": 40, "records": 4, "seeds": 2, "seed": seed} if quick else {"seed": seed}
    label = text.name.split(" (")[0]
    trained: list[Training] = []
    for name, make, source, length in (
        (f"logistic, {label}", logistic, text, 1.0),
        ("softmax, digits", softmax, pictures, LONGER),
    ):
        for workers, batch in ((1, BATCH), (8, BATCH // 4)):
            trained += train(make, source, name=name, workers=workers, batch=batch, length=length, **options)
    lengths = {name: v.size for name, v in vectors.items()}
    found = {"rows": rows, "sweep": sweep, "trained": trained, "lengths": lengths, "label": label}
    sizes = {"rounds": options.get("steps", 400), "seeds": options.get("seeds", SEEDS)}
    return found | {"columns": (text.d, pictures.d * 10)} | sizes


# --- what holds -------------------------------------------------------------------------------------------------------


def _by_place(rows: list[Variance]) -> dict[tuple, dict[str, float]]:
    """The variance of each quantizer, by input, bits and bucket."""
    found: dict = {}
    for row in rows:
        found.setdefault((row.input, row.bits, row.bucket), {})[row.quantizer] = row.variance
    return found


def _where(places) -> str:
    return ", ".join(dict.fromkeys(place[0] for place in places)) or "none"


def _bits(places) -> str:
    return ", ".join(str(b) for b in sorted({place[1] for place in places}))


def variance_statements(rows, sweep) -> list[Statement]:
    """Which of the paper's orderings of variances hold, and on how many inputs; these are exact."""
    said, four = [], _by_place(rows)
    for what, table, id in (
        (f"{BITS} bits, buckets of {BUCKET}", four, ""),
        ("all bits and buckets", _by_place(sweep), "-swept"),
    ):
        about = ("experiments-other-buckets",) if table is not four else ()
        lower = [place for place, v in table.items() if v["NUQSGD"] < v["QSGD"]]
        equal = [place for place, v in table.items() if v["NUQSGD"] == v["QSGD"]]
        higher = [place for place in table if place not in lower and place not in equal]
        numbers = f"On {len(lower)} of {len(table)}"
        if equal:
            numbers += f"; equal on {len(equal)}, at {_bits(equal)} bits, where both have the levels 0 and 1"
        if table is four:
            numbers += f"; higher on {_where(higher)}."
        else:
            numbers += f"; higher on {len(higher)}" + (f", at {_bits(higher)} bits." if higher else ".")
        text = f"The variance of NUQSGD is below that of QSGD ({what})."
        trials, values = [place in lower for place in table], {"equal": len(equal), "higher": len(higher)}
        bears_on = _entries("abstract-nuqsgd-has-a-smaller-variance", *about)
        said.append(Statement(f"below-qsgd{id}", text, trials, numbers, "", bears_on, values))
        ratio, ends, near = _ratios(table, "NUQSGD", "QSGDinf")
        above, below_it = (
            [p for p, r in ratio.items() if p not in near and (r > 1.0) == more] for more in (True, False)
        )
        numbers = f"Within a factor of {COMPARABLE:g} on {len(near)} of {len(table)}"
        if table is four:
            numbers += (
                f" ({_where(near)}); higher on {_where(above)}; lower on {_where(below_it)}. NUQSGD over QSGDinf lies "
                f"between {number(ends['least'])} and {number(ends['most'])}."
            )
        else:
            numbers += f"; higher on {len(above)}, lower on {len(below_it)}."
        text = f"The variance of NUQSGD is comparable to that of QSGDinf ({what})."
        bears_on = _entries("abstract-nuqsgd-matches-qsgdinf-in-variance", *about)
        trials = [place in near for place in table]
        said.append(Statement(f"near-qsgdinf{id}", text, trials, numbers, "", bears_on, ends))
    if all("QSGD, no zero" in v for v in four.values()):
        ratio, ends, near = _ratios(four, "QSGD, no zero", "QSGD")
        text = (
            "The released code's QSGD, whose levels have no zero, stands for the QSGD of the papers"
            f" ({BITS} bits, buckets of {BUCKET})."
        )
        numbers = f"Its variance is {number(ends['least'])} to {number(ends['most'])} times as large."
        bears_on, trials = _entries("the-released-code-levels-without-zero"), [place in near for place in ratio]
        said.append(Statement("released-qsgd", text, trials, numbers, OURS, bears_on, ends))
    return said


def _ratios(table: dict, mine: str, theirs: str) -> tuple[dict, dict, list]:
    """The ratios of two variances, their least and most, and the places where they are comparable."""
    ratio = {place: v[mine] / v[theirs] for place, v in table.items()}
    near = [place for place, r in ratio.items() if 1 / COMPARABLE <= r <= COMPARABLE]
    return ratio, {"least": min(ratio.values()), "most": max(ratio.values())}, near


def _entries(*names: str) -> tuple[str, ...]:
    """Entries of the paper."""
    return tuple(f"nuqsgd/{name}" for name in names)


def training_statements(trained) -> list[Statement]:
    """Which of the paper's orderings hold in training, by the seeds."""
    said = []

    def ordered(id, text, metric, other, rule, about, scale=1.0, form=number):
        compare = Compare(
            lambda row: scale * getattr(row, metric),
            [("NUQSGD", other)],
            rule,
            ("setting",),
            show=lambda row: form(getattr(row, metric).mean()),
        )
        said.append(Statement(id, text, compare(trained), bears_on=_entries(*about)))

    near, nearer = (partial(within, factor=factor) for factor in (COMPARABLE, 1.1))
    along, smaller, matches = (
        "experiments-variance-along-the-run",
        "abstract-smaller-variance",
        "abstract-nuqsgd-matches",
    )
    text = "Along the run the variance of NUQSGD is below that of QSGD."
    about = ("abstract-nuqsgd-has-a-smaller-variance", along)
    ordered("noise-below-qsgd", text, "variance", "QSGD", below, about)
    text = "Along the run the variance of NUQSGD is comparable to that of QSGDinf."
    ordered("noise-near-qsgdinf", text, "variance", "QSGDinf", near, (f"{matches}-qsgdinf-in-variance", along))
    text = "NUQSGD trains to a lower loss than QSGD (f - f*)."
    about = (f"{smaller}-lower-training-loss", "figures-19-20-and-21")
    ordered("loss-below-qsgd", text, "loss", "QSGD", below, about)
    text = "NUQSGD trains to the loss of QSGDinf (f - f*, within 10 %)."
    ordered("loss-of-qsgdinf", text, "loss", "QSGDinf", nearer, (f"{matches}-qsgdinf-in-loss",))
    text, higher = (
        "NUQSGD has a higher held-out accuracy than QSGD (in per cent).",
        (f"{smaller}-higher-test-accuracy",),
    )
    ordered("accuracy-above-qsgd", text, "accuracy", "QSGD", below, higher, -1.0, lambda share: f"{100 * share:.1f}")
    return said


def _wide(rows, names) -> list[tuple[str, ...]]:
    table = _by_place(rows)
    return [(place[0], *(number(v[name]) for name in names)) for place, v in table.items()]


def draw(sweep, dimensions, trained):
    """Above: variance against bits at three vectors, with worst cases dotted.  Below: variance and loss in training."""
    from matplotlib.lines import Line2D

    look_of = {name: look | {"markerfacecolor": "none"} for name, look in looks(("float32", *THREE)).items()}
    dotted: dict[str, Any] = {"marker": "", "linewidth": 1.4, "linestyle": (0, (1, 1.5))}
    worst = {
        "QSGD": lambda d, b: bounds.qsgd_variance(d, 2 ** (b - 1) - 1),
        "QSGDinf": lambda d, b: bounds.qsgd_inf_variance(d, 2 ** (b - 1) - 1),
        "NUQSGD": lambda d, b: bounds.nuqsgd_variance(d, 2 ** (b - 1) - 2),
    }
    settings = list(dict.fromkeys((row.problem, row.workers, row.batch) for row in trained))
    with canvas(2, 3, 1.3 * COLUMN) as (figure, grid):
        for axes, name in zip(grid[0], [name for name in DRAWN if name in dimensions], strict=False):
            for q in THREE:
                mine = [row for row in sweep if (row.input, row.bucket, row.quantizer) == (name, BUCKET, q)]
                bits = [row.bits for row in mine]
                axes.plot(bits, [row.variance for row in mine], **look_of[q])
                largest = min(BUCKET, dimensions[name])
                axes.plot(bits, [worst[q](largest, b) for b in bits], color=look_of[q]["color"], **dotted)
            axes.set_xticks(sorted({row.bits for row in sweep}))
            axes.set(yscale="log", xlabel="bits a coordinate", title=name)
        grid[0, 0].set_ylabel(r"$\mathrm{E}\|Q(v)-v\|^2/\|v\|^2$")
        first, last = settings[0], settings[-1]
        for axes, setting, what in zip(grid[1], (first, first, last), ("noise", "gap", "gap"), strict=True):
            for row in trained:
                if (row.problem, row.workers, row.batch) == setting and (what, row.method) != ("noise", "float32"):
                    axes.plot(row.step, getattr(row, what), markevery=4, label=row.method, **look_of[row.method])
            axes.set(yscale="log", xlabel="rounds", title=f"{setting[0]}, {setting[1]} x {setting[2]}")
            axes.set_ylabel("relative variance along the run" if what == "noise" else r"$f(x_t)-f^*$")
        handles, labels = grid[1, 1].get_legend_handles_labels()
        handles.append(Line2D([], [], color="0.4", **dotted))
        figure.legend(handles, [*labels, "worst case, in its colour"], loc="outside lower center", ncols=5)
    return figure


def report(rows, sweep, trained, lengths: dict, label: str, columns, rounds: int, seeds: int) -> Study:
    """The study of these variances and runs: ``lengths`` of the vectors by name, ``columns`` d of both problems."""
    names = list(dict.fromkeys(row.quantizer for row in rows))
    swept = [
        (place[0], str(place[1]), str(place[2]), *(number(v[q]) for q in THREE))
        for place, v in _by_place(sweep).items()
        if place[0] in DRAWN
    ]
    runs = [
        line(
            f"{row.problem} | {row.workers} x {row.batch} | {row.method} | {number(row.bits)} | "
            f"{number(row.variance.mean())} | {interval(row.loss)} | "
            f"{interval(100.0 * row.accuracy, '{:.1f}'.format)} %"
        )
        for row in trained
    ]
    head = line("problem | workers x batch | method | bits a coordinate | variance along the run | f - f* | held out")
    exact = f"Exact relative variance at {BITS} bits, buckets of {BUCKET}"
    tables = [
        Table(exact, ("vector", *names), _wide(rows, names)),
        Table("The sweep, at three of the vectors", ("vector", "bits", "bucket", *THREE), swept),
        Table("Training", head, runs),
    ]
    setting = (
        f"Levels: QSGD and QSGDinf j/s, j = 0, ..., s = 2^(bits-1) - 1, of the 2-norm and of the maximum; NUQSGD 0, "
        f'2^-j; "best ratio" p^j with the p of least worst variance; "no zero" as in the released code. Synthetic '
        f"vectors have {lengths['Gaussian']:,} coordinates; real gradients are those of logistic regression on "
        f"{label} (d = {columns[0]:,}) and softmax regression on digits (d = {columns[1]}, one bucket), l2 = {L2:g}, "
        f"full or over {BATCH} rows. Training: batches of {BATCH} rows on one worker (the paper simulates k GPUs by k "
        "independent mini-batches), or of 32 on each of 8, as in its comparison under small mini-batches; momentum "
        f"{MOMENTUM:g}, l2 = {L2:g} as part of what is sent, one step size for all, {1 - MOMENTUM:.1g}/L on logistic "
        f"and {LONGER * (1 - MOMENTUM):.1g}/L on softmax regression, {rounds} rounds, 80 % of the rows, means over "
        f"{seeds} seeds with ± 95 % intervals; f - f* is the mean over the last quarter of the run."
    )
    title = "NUQSGD, QSGD and QSGDinf at equal bits"
    said = [*variance_statements(rows, sweep), *training_statements(trained)]
    alt = (
        "Above: variance against bits for QSGD, QSGDinf and NUQSGD at a Gaussian vector, a lognormal one and a "
        "mini-batch gradient, with dotted worst cases. Below: variance along a run, and f - f* on two problems"
    )
    measured = {"variances": rows, "sweep": sweep, "training": trained}
    return Study("nuqsgd", title, setting, measured, tables, said, lambda: draw(sweep, lengths, trained), alt)
