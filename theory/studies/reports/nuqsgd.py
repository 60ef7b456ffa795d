"""Statements, tables and the figure of the study of NUQSGD, QSGD and QSGDinf."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...bounds import (
    nuqsgd_variance,
    qsgd_inf_variance,
    qsgd_variance,
)
from ...plots.figure_style import COLUMN
from ...plots.text import number
from ..nuqsgd import BATCH, BITS, BUCKET, L2, LONGER, MOMENTUM, THREE, Variance
from ..shared.panels import canvas
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import Compare, Statement, Trial, below, within

COMPARABLE = 2.0  # the factor for "comparable" variances
KEPT = ("Gaussian", "lognormal 1.5", "logistic near x*, batch")


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
        entries = 1 if table is four else 2  # how many entries of the index it is about
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
        about = ("nuqsgd/abstract-nuqsgd-has-a-smaller-variance", "nuqsgd/experiments-other-buckets")
        text = f"The variance of NUQSGD is below that of QSGD ({what})."
        trials, values = [place in lower for place in table], {"equal": len(equal), "higher": len(higher)}
        said.append(Statement(f"below-qsgd{id}", text, trials, numbers, "", about[:entries], values))
        ratio = {place: v["NUQSGD"] / v["QSGDinf"] for place, v in table.items()}
        near = [place for place, r in ratio.items() if 1 / COMPARABLE <= r <= COMPARABLE]
        above = [place for place, r in ratio.items() if r > COMPARABLE]
        below_it = [place for place, r in ratio.items() if r < 1 / COMPARABLE]
        ends = {"least": min(ratio.values()), "most": max(ratio.values())}
        numbers = f"Within a factor of {COMPARABLE:g} on {len(near)} of {len(table)}"
        if table is four:
            numbers += (
                f" ({_where(near)}); higher on {_where(above)}; lower on {_where(below_it)}. NUQSGD over QSGDinf lies "
                f"between {number(ends['least'])} and {number(ends['most'])}."
            )
        else:
            numbers += f"; higher on {len(above)}, lower on {len(below_it)}."
        about = ("nuqsgd/abstract-nuqsgd-matches-qsgdinf-in-variance", "nuqsgd/experiments-other-buckets")
        text = f"The variance of NUQSGD is comparable to that of QSGDinf ({what})."
        trials = [place in near for place in table]
        said.append(Statement(f"near-qsgdinf{id}", text, trials, numbers, "", about[:entries], ends))
    ratio = {place: v["QSGD, no zero"] / v["QSGD"] for place, v in four.items() if "QSGD, no zero" in v}
    if ratio:
        ends = {"least": min(ratio.values()), "most": max(ratio.values())}
        said.append(
            Statement(
                "released-qsgd",
                "The released code's QSGD, whose levels have no zero, stands for the QSGD of the papers"
                f" ({BITS} bits, buckets of {BUCKET}).",
                [1 / COMPARABLE <= r <= COMPARABLE for r in ratio.values()],
                f"Its variance is {number(ends['least'])} to {number(ends['most'])} times as large.",
                OURS,
                ("nuqsgd/the-released-code-levels-without-zero",),
                ends,
            )
        )
    return said


def training_statements(trained) -> list[Statement]:
    """Which of the paper's orderings hold in training, by the seeds."""

    def compared(metric: str, other: str, rule, scale: float = 1.0, form=number) -> list[Trial]:
        return Compare(
            lambda row: scale * getattr(row, metric),
            [("NUQSGD", other)],
            rule,
            ("setting",),
            show=lambda row: form(getattr(row, metric).mean()),
        )(trained)

    abstract = "nuqsgd/abstract-"
    return [
        Statement(
            "noise-below-qsgd",
            "Along the run the variance of NUQSGD is below that of QSGD.",
            compared("variance", "QSGD", below),
            bears_on=(f"{abstract}nuqsgd-has-a-smaller-variance", "nuqsgd/experiments-variance-along-the-run"),
        ),
        Statement(
            "noise-near-qsgdinf",
            "Along the run the variance of NUQSGD is comparable to that of QSGDinf.",
            compared("variance", "QSGDinf", partial(within, factor=COMPARABLE)),
            bears_on=(f"{abstract}nuqsgd-matches-qsgdinf-in-variance", "nuqsgd/experiments-variance-along-the-run"),
        ),
        Statement(
            "loss-below-qsgd",
            "NUQSGD trains to a lower loss than QSGD (f - f*).",
            compared("loss", "QSGD", below),
            bears_on=(f"{abstract}smaller-variance-lower-training-loss", "nuqsgd/figures-19-20-and-21"),
        ),
        Statement(
            "loss-of-qsgdinf",
            "NUQSGD trains to the loss of QSGDinf (f - f*, within 10 %).",
            compared("loss", "QSGDinf", partial(within, factor=1.1)),
            bears_on=(f"{abstract}nuqsgd-matches-qsgdinf-in-loss",),
        ),
        Statement(
            "accuracy-above-qsgd",
            "NUQSGD has a higher held-out accuracy than QSGD (in per cent).",
            compared("accuracy", "QSGD", below, -1.0, lambda share: f"{100 * share:.1f}"),
            bears_on=(f"{abstract}smaller-variance-higher-test-accuracy",),
        ),
    ]


def _wide(rows, names) -> list[tuple[str, ...]]:
    table = _by_place(rows)
    return [(place[0], *(number(v[name]) for name in names)) for place, v in table.items()]


def draw(sweep, dimensions, trained):
    """Above: variance against bits at three vectors, with worst cases dotted.  Below: variance and loss in training."""
    from matplotlib.lines import Line2D

    looks = {
        name: {"color": colour, "marker": mark, "linestyle": dash, "markerfacecolor": "none", "label": name}
        for name, colour, mark, dash in (
            ("float32", "#7F7F7F", "x", ":"),
            ("QSGD", "#D55E00", "o", "--"),
            ("QSGDinf", "#0072B2", "s", "-."),
            ("NUQSGD", "#009E73", "D", "-"),
        )
    }
    dotted: dict[str, Any] = {"marker": "", "linewidth": 1.4, "linestyle": (0, (1, 1.5))}
    worst = {
        "QSGD": lambda d, b: qsgd_variance(d, 2 ** (b - 1) - 1),
        "QSGDinf": lambda d, b: qsgd_inf_variance(d, 2 ** (b - 1) - 1),
        "NUQSGD": lambda d, b: nuqsgd_variance(d, 2 ** (b - 1) - 2),
    }
    settings = list(dict.fromkeys((row.problem, row.workers, row.batch) for row in trained))
    with canvas(2, 3, 1.3 * COLUMN) as (figure, grid):
        for axes, name in zip(grid[0], [name for name in KEPT if name in dimensions], strict=False):
            for q in THREE:
                mine = [row for row in sweep if (row.input, row.bucket, row.quantizer) == (name, BUCKET, q)]
                bits = [row.bits for row in mine]
                axes.plot(bits, [row.variance for row in mine], **looks[q])
                largest = min(BUCKET, dimensions[name])
                axes.plot(bits, [worst[q](largest, b) for b in bits], color=looks[q]["color"], **dotted)
            axes.set_xticks(sorted({row.bits for row in sweep}))
            axes.set(yscale="log", xlabel="bits a coordinate", title=name)
        grid[0, 0].set_ylabel(r"$\mathrm{E}\|Q(v)-v\|^2/\|v\|^2$")
        first, last = settings[0], settings[-1]
        for axes, setting, what in zip(grid[1], (first, first, last), ("noise", "gap", "gap"), strict=True):
            for row in trained:
                if (row.problem, row.workers, row.batch) == setting and (what, row.method) != ("noise", "float32"):
                    axes.plot(row.step, getattr(row, what), markevery=4, **looks[row.method])
            axes.set(yscale="log", xlabel="rounds", title=f"{setting[0]}, {setting[1]} x {setting[2]}")
            axes.set_ylabel("relative variance along the run" if what == "noise" else r"$f(x_t)-f^*$")
        handles, labels = grid[1, 1].get_legend_handles_labels()
        handles.append(Line2D([], [], color="0.4", **dotted))
        figure.legend(handles, [*labels, "worst case, in its colour"], loc="outside lower center", ncols=5)
    return figure


def report(rows, sweep, trained, lengths: dict, label: str, columns, rounds: int, seeds: int) -> Study:
    """The study of these variances and runs: ``lengths`` of the vectors by name, ``columns`` d of both problems."""
    names = list(dict.fromkeys(row.quantizer for row in rows))
    tables = [
        Table(f"Exact relative variance at {BITS} bits, buckets of {BUCKET}", ("vector", *names), _wide(rows, names))
    ]
    cells = [
        (place[0], str(place[1]), str(place[2]), *(number(v[q]) for q in THREE))
        for place, v in _by_place(sweep).items()
        if place[0] in KEPT
    ]
    tables.append(Table("The sweep, at three of the vectors", ("vector", "bits", "bucket", *THREE), cells))
    cells = [
        line(
            f"{row.problem} | {row.workers} x {row.batch} | {row.method} | {number(row.bits)} | "
            f"{number(row.variance.mean())} | {number(row.loss.mean())} ± {number(row.loss.std())} | "
            f"{100 * row.accuracy.mean():.1f} ± {100 * row.accuracy.std():.1f} %"
        )
        for row in trained
    ]
    head = ("problem", "workers x batch", "method", "bits a coordinate", "variance along the run", "f - f*", "held out")
    tables.append(Table("Training", head, cells))
    setting = (
        f"Levels: QSGD and QSGDinf j/s, j = 0, ..., s = 2^(bits-1) - 1, of the 2-norm and of the maximum; NUQSGD 0, "
        f'2^-j; "best ratio" p^j with the p of least worst variance; "no zero" as in the released code. Synthetic '
        f"vectors have {lengths['Gaussian']:,} coordinates; real gradients are those of logistic regression on "
        f"{label} (d = {columns[0]:,}) and softmax regression on digits (d = {columns[1]}, one bucket), l2 = {L2:g}, "
        f"full or over {BATCH} rows. Training: batches of {BATCH} rows on one worker (the paper simulates k GPUs by k "
        "independent mini-batches), or of 32 on each of 8, as in its comparison under small mini-batches; momentum "
        f"{MOMENTUM:g}, l2 = {L2:g} as part of what is sent, one step size for all, {1 - MOMENTUM:.1g}/L on logistic "
        f"and {LONGER * (1 - MOMENTUM):.1g}/L on softmax regression, {rounds} rounds, 80 % of the rows, means over "
        f"{seeds} seeds; f - f* is the mean over the last quarter of the run."
    )
    return Study(
        "nuqsgd",
        "NUQSGD, QSGD and QSGDinf at equal bits",
        setting,
        {"variances": rows, "sweep": sweep, "training": trained},
        tables,
        [*variance_statements(rows, sweep), *training_statements(trained)],
        lambda: draw(sweep, lengths, trained),
        "Above: variance against bits for QSGD, QSGDinf and NUQSGD at a Gaussian vector, a lognormal one and a "
        "mini-batch gradient, with dotted worst cases. Below: variance along a run, and f - f* on two problems",
    )
