"""EF-SignSGD against NUQSGD with 4 and 8 bits: bits per bucket, time of a round, loss against bits, held-out accuracy.

EF-SignSGD stores the error of its signs in a memory, with one scale a bucket, as it is published, or with two, those of
1-bit SGD, which take the bits that the NUQSGD paper counts; NUQSGD is unbiased and has no memory.  All have momentum
0.9 and weight decay (the l2 term, part of what is sent), as in the runs of that paper.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ...bounds import optimal_ratio
from ...cluster import run
from ...compressors import NUQSGD, Bucketed, EntropyCoded, Identity, ScaledSign, TwoScaleSign, encode
from ...core.random import key
from ...data import rcv1_topics
from ...methods import ErrorFeedback, ParallelSGD
from ...methods.schedules import Constant
from ...plots.appearance import COLUMN, number
from ...plots.appearance import bits as bits_text
from ...problems import accuracy, batch_gradient, lipschitz, logistic, softmax, solve, value
from ...reporting.progress import track
from ...wire.frame import open_frame
from ..shared.curves import canvas, legend_below, looks
from ..shared.messages import TURNS, Message, measure_messages, round_seconds
from ..shared.problems import Way, digits, rcv1, reached, real_or_twin, topics_file
from ..shared.report import OURS, Study, Table, interval, line
from ..shared.verdicts import Compare, Statement, below, faster, within
from .nuqsgd import L2, MOMENTUM

SMALL, LARGE = 64, 8192
LEVELS = {4: 6, 8: 119}  # s: all levels of 4 bits; of 8 bits 241 of 256, since levels below 1e-36 are not allowed
SIGN, FOUR, EIGHT = f"EF-sign, {SMALL}", f"NUQSGD 4 bits, {LARGE}", f"NUQSGD 8 bits, {LARGE}"
TWO_SCALES = f"EF-sign, two scales, {SMALL}"  # as the paper counts
CODED, BEST_RATIO = f"{FOUR}, coded", f"{EIGHT}, best ratio"
WORKERS, BATCH = 8, 32
STEPS = (16.0, 4.0, 1.0, 0.25, 0.0625)  # in units of (1 - momentum)/L: the best one of each method is used
SEEDS = 6
SHARE, QUICK_SHARE = 0.02, 0.2  # fraction of f(0) - f*: the target loss
COMMON = 1.0  # the step size at which methods are compared with one for all
BANDWIDTHS = (1e9, 1e10, 1e11)  # bits per second
SIGNS = {SIGN: ("", ""), TWO_SCALES: ("-two-scales", " with two scales")}  # ends of an id, words of a statement
PRINTED = 128  # bits of a bucket of 64 in the paper
CLOSE = 1.25  # the factor for "close"


class Training(NamedTuple):
    """One method on one problem with one step size.

    Attributes
    ----------
    problem, method : str
    step : float
        Times (1 - momentum)/L.
    bits : float
        Payload bits per coordinate and message.
    loss, accuracy, rounds : ndarray, shape (seeds,)
        f - f* on the training part, mean over the last quarter of the run; accuracy on the held-out part, at the end;
        rounds until f - f* is at the target fraction of f(0) - f*, infinite if never.
    gradient, coding, whole : float
        Milliseconds of a round in the simulator: gradients of all workers, quantizing and memory, everything; the least
        mean between two records, since other load only adds.
    """

    problem: str
    method: str
    step: float
    bits: float
    loss: np.ndarray
    accuracy: np.ndarray
    rounds: np.ndarray
    gradient: float
    coding: float
    whole: float


def methods(quick: bool = False) -> dict[str, Way]:
    """The methods; the number after a name is the bucket size, and coded messages need no separate runs.

    Examples
    --------
    >>> list(methods(quick=True))
    ['float32', 'EF-sign, 64', 'EF-sign, two scales, 64', 'NUQSGD 4 bits, 8192', 'NUQSGD 8 bits, 8192']
    """
    ways = {"float32": Way("float32", Identity())}
    for size in (SMALL, LARGE):
        ways[f"EF-sign, {size}"] = Way("sign", Bucketed(ScaledSign(), size), ErrorFeedback())
    ways[TWO_SCALES] = Way("1-bit SGD", Bucketed(TwoScaleSign(), SMALL), ErrorFeedback())
    for bits, s in LEVELS.items():
        for size in (SMALL, LARGE):
            ways[f"NUQSGD {bits} bits, {size}"] = Way("NUQSGD", Bucketed(NUQSGD(s), size))
    return {name: ways[name] for name in ("float32", SIGN, TWO_SCALES, FOUR, EIGHT)} if quick else ways


def coded(ways: dict[str, Way]) -> dict[str, Way]:
    """The 4-bit messages again, entropy coded."""
    found = {name: way for name, way in ways.items() if name.startswith("NUQSGD 4")}
    return {f"{name}, coded": way._replace(compressor=EntropyCoded(way.compressor)) for name, way in found.items()}


# --- training ---------------------------------------------------------------------------------------------------------


def train(
    make, data, ways: dict[str, Way], name, *, rounds=200, records=20, seeds=SEEDS, seed=0, steps=STEPS, share=SHARE
) -> tuple[list[Training], dict, np.ndarray]:
    """Train each way with each step size on 80 % of the rows; coded messages are measured along the run.

    Parameters
    ----------
    make : callable
        ``make(data, l2)``: :func:`theory.logistic` or :func:`theory.softmax`.
    data : Dataset
    ways : dict of str to Way
    name : str
        Name of the problem in the rows.
    rounds, records : int
        Number of rounds, and of evaluations of f.
    seeds, seed : int
    steps : tuple of float
        Times (1 - momentum)/L.
    share : float
        The target loss as a fraction of f(0) - f*.

    Returns
    -------
    rows : list of Training
    curves : dict of (method, step) to (bits a worker has sent, f - f*), means over the seeds
    gradient : numpy.ndarray
        The first worker's last mini-batch gradient of float32, for :func:`messages`.
    """
    part, held_out = data.split(0.8, seed=0)
    problem, test = make(part, L2), make(held_out, L2)
    optimum, start = solve(problem, 1e-9).fun, value(problem, np.zeros(problem.d))
    rng = np.random.default_rng(int(key(seed, "sign-and-nuqsgd", "rows")))
    drawn = rng.integers(problem.n, size=(records + 1, BATCH))
    rows, curves, again = [], {}, coded(ways)
    last: Any = None

    def once(way, step, r, code):
        sizes: list = []

        def watch(intermediate_result):
            if code is not None and r == 0:
                g = batch_gradient(problem, drawn[min(len(sizes), records)], intermediate_result.last)
                stream = int(key(seed, "sign-and-nuqsgd", "code", len(sizes)))
                sizes.append(open_frame(encode(code.compressor, g, stream)).payload_bits)

        step = Constant(step * (1.0 - MOMENTUM) / lipschitz(problem))
        plan = ParallelSGD(way.compressor, step=step, feedback=way.feedback, batch=BATCH, momentum=MOMENTUM)
        how = {"steps": rounds, "seed": seed + r, "callback": watch, "record_every": max(1, rounds // records)}
        done = run(plan, problem, workers=WORKERS, **how)
        return done, float(np.mean(sizes)) if sizes else math.nan

    def row_of(method, step, runs, width):
        history = [done.history for done, _ in runs]
        gaps = np.array([h["f"] for h in history]) - optimum
        at = history[0]["step"]
        spent = [
            1e3 * min(np.min(np.diff(h[f"seconds{what}"]) / np.diff(at)) for h in history)
            for what in ("_gradient", "_coding", "")
        ]
        curves[method, step] = width * problem.d * at, gaps.mean(axis=0)
        loss = gaps[:, -max(1, records // 4) :].mean(axis=1)
        shares = np.array([accuracy(test, done.last) for done, _ in runs])
        until = np.array([reached(at, gap, share * (start - optimum)) for gap in gaps])
        return Training(name, method, step, width, loss, shares, until, *spent)

    for method, way in track(ways.items(), name):
        code = again.get(f"{method}, coded")
        for step in steps:
            with ThreadPoolExecutor(2) as pool:
                runs = list(pool.map(lambda r, w=way, s=step, c=code: once(w, s, r, c), range(seeds)))
            sent = float(runs[0][0].history["bits_up"][-1] / (rounds * problem.d))
            rows.append(row_of(method, step, runs, sent))
            if code is not None:
                rows.append(row_of(f"{method}, coded", step, runs, runs[0][1] / problem.d))
            if method == "float32":
                last = runs[0][0].last
    return rows, curves, batch_gradient(problem, drawn[-1], last).astype(np.float32)


def best(trained, what: str = "loss") -> dict[tuple[str, str], Training]:
    """For each problem and method, the runs with the best step size: the least mean of ``loss``, or of ``rounds``."""
    found: dict[tuple[str, str], Training] = {}
    least: dict[tuple[str, str], float] = {}
    for row in trained:
        place, mean = (row.problem, row.method), float(np.nan_to_num(getattr(row, what).mean(), nan=math.inf))
        if mean < least.get(place, math.inf) or place not in found:
            found[place], least[place] = row, mean
    return found


def collect(quick: bool, seed: int, data: str | None, topics: str | None) -> dict:
    """Messages on a Gaussian vector and on real gradients, then training, for EF-SignSGD and NUQSGD."""
    file, rows = topics_file(topics), 2000 if quick else None
    source: Any = real_or_twin(data)
    text = rcv1(source, rows)
    many = digits() if file is None else rcv1_topics(file)
    many = many.split(rows / many.n, seed=0)[0] if rows is not None and rows < many.n else many
    label = "RCV1" if data is None and source != "rcv1-like" else text.name.split(" (")[0]
    sets = {
        f"logistic, {label}": (logistic, text),
        "softmax, digits" if file is None else "softmax, RCV1's topics": (softmax, many),
    }
    share = QUICK_SHARE if quick else SHARE
    options = {"rounds": 40, "records": 10, "seeds": 2, "seed": seed} if quick else {"seed": seed}
    ways, trained, curves, vectors = methods(quick), [], {}, {}
    rng = np.random.default_rng(int(key(seed, "sign-and-nuqsgd", "input")))
    vectors["Gaussian"] = rng.standard_normal(10**5 if quick else 10**6)
    for name, (make, source) in sets.items():
        found, seen, vectors[name] = train(make, source, ways, name, share=share, **options)
        trained += found
        curves[name] = {row.method: seen[row.method, row.step] for row in best(found).values()}
    ratio = Bucketed(NUQSGD(126, optimal_ratio(126, LARGE)), LARGE)
    every = ways | coded(ways) | {BEST_RATIO: Way("NUQSGD", ratio)}
    sent = [row for name, v in vectors.items() for row in measure_messages(name, v, every, seed, 3 if quick else TURNS)]
    measured = {"sent": sent, "trained": trained, "curves": curves, "share": share}
    measured["lengths"] = {name: v.size for name, v in vectors.items()}
    return measured | {"rounds": options.get("rounds", 200), "seeds": options.get("seeds", SEEDS)}


# --- what holds -------------------------------------------------------------------------------------------------------


def seconds_to_goal(sent, trained) -> dict[tuple[str, str, float], np.ndarray]:
    """Rounds until the goal, seed by seed, times coding and exchange of one, by problem, method and bandwidth.

    The first seed has the times of the first turn, and so on.
    """
    message = {(row.input, row.method): row for row in sent}
    return {
        (*place, b): row.rounds * np.resize(round_seconds(message[place], WORKERS, b), row.rounds.shape)
        for place, row in best(trained, "rounds").items()
        for b in BANDWIDTHS
    }


def _giga(bandwidth: float) -> str:
    return f"{bandwidth / 1e9:g}"


def _over(ratios: dict[str, float]) -> str:
    """Ratios with their names: "1 Gbit/s: 0.4, 10 Gbit/s: 1.1"."""
    return ", ".join(f"{name}: {number(ratio)}" for name, ratio in ratios.items())


def crossing(a: Message, b: Message, workers: int) -> float:
    """The bandwidth from which a round of ``a``, which sends fewer bits, takes longer than one of ``b``."""
    slower = float(np.median(round_seconds(a, workers, math.inf)) - np.median(round_seconds(b, workers, math.inf)))
    return (workers - 1) * (b.bits - a.bits) / slower if slower > 0 else math.inf


def message_statements(sent) -> list[Statement]:
    """The statements of the paper on messages and the time of a round."""
    first = {row.method: row for row in sent if row.input == sent[0].input}
    whole, two = bits_of_bucket(sent, SIGN), bits_of_bucket(sent, TWO_SCALES)
    packed = [row for row in sent if not math.isnan(row.form)]
    exact = [row.form == row.bits for row in packed]
    widths = {row.method: row.bits / row.d for row in first.values() if not math.isnan(row.form)}
    said = []
    text = (
        f"EF-SignSGD's messages with two scales have {PRINTED} bits for each bucket of {SMALL} values, as the paper "
        "counts (32 for each scaling factor, 64 for the signs)."
    )
    numbers = (
        f"A bucket of {SMALL} takes {two} bits, {two / SMALL:g} a value, with two scales, and {whole} with one. What "
        "the paper's implementation sent is not judged."
    )
    values = {"two scales": two, "a value": two / SMALL, "one scale": whole}
    said.append(
        Statement("bucket", text, [two == PRINTED], numbers, "", ("nuqsgd/figure-18-bits-of-ef-signsgd",), values)
    )
    text = (
        "A packed message of d coordinates takes d b + 32 ceil(d/m) bits in buckets of m, b of a coordinate, and with "
        "two scales twice the 32."
    )
    count = f"To the bit for {sum(exact)} of {len(packed)} messages"
    numbers = f"{count}. Bits a coordinate at d = {sent[0].d:,}: {_over(widths)}."
    said.append(Statement("packed-length", text, exact, numbers, "", ("lecture/slide-what-a-worker-sends",)))
    rounds = (
        ("round-4", FOUR, "takes longer than one of 4-bit NUQSGD", ""),
        ("round-8", EIGHT, "takes about as long as one of 8-bit NUQSGD", f" (within a factor of {CLOSE:g})"),
    )
    for (id, other, text, rule), (sign, (end, scales)) in product(rounds, SIGNS.items()):
        pairs = {b: [round_seconds(first[name], WORKERS, b) for name in (sign, other)] for b in BANDWIDTHS}
        at = crossing(first[sign], first[other], WORKERS)
        ratios = {f"{_giga(b)} Gbit/s": float(np.median(mine / theirs)) for b, (mine, theirs) in pairs.items()}
        on = f". It takes longer from {_giga(float(f'{at:.2g}'))} Gbit/s on." if at < math.inf else "."
        said.append(
            Statement(
                id + end,
                f"With {WORKERS} workers a round of EF-SignSGD{scales} {text}{rule}.",
                [within(a, b, CLOSE) if rule else faster(b, a) for a, b in pairs.values()],
                f"Time over time, {sign} and {other}, d = {sent[0].d:,}: {_over(ratios)}{on}",
                bears_on=("nuqsgd/figure-18-time-of-an-epoch",),
                values=ratios | {"longer from": at / 1e9},
            )
        )
    return said


def _percent(row: Training) -> str:
    return f"{100 * row.accuracy.mean():.1f}"


def training_statements(sent, trained) -> list[Statement]:
    """The statements of the paper on bits, seconds, loss and accuracy."""
    said, spent = [], seconds_to_goal(sent, trained)
    problems = list(dict.fromkeys(row.problem for row in trained))
    bits = {place: row.rounds * row.bits for place, row in best(trained, "rounds").items()}

    def fewer(mine: str, theirs: str) -> dict[str, Any]:
        """Verdicts on the bits of the first, and the second's over them."""
        pairs = {p: (bits[p, mine], bits[p, theirs]) for p in problems}
        ratios = {p: float(b.mean()) / float(a.mean()) for p, (a, b) in pairs.items()}
        said = f"Bits over bits, {theirs} and {mine}: {_over(ratios)}."
        return {"trials": [below(*pair) for pair in pairs.values()], "said": said, "values": ratios}

    whole, coding = ("nuqsgd/abstract-faster-end-to-end-than-ef-signsgd",), ("nuqsgd/abstract-with-non-trivial-coding",)
    codes = (("packed", FOUR, "packed", ()), ("coded", CODED, "with entropy coding", coding))
    for (id, other, how, about), (sign, (end, scales)) in product(codes, SIGNS.items()):
        times = {(p, b): (spent[p, sign, b], spent[p, other, b]) for p in problems for b in BANDWIDTHS}
        ratios = {f"{p}, {_giga(b)} Gbit/s": float(a.mean()) / float(m.mean()) for (p, b), (a, m) in times.items()}
        text = f"NUQSGD, {how}, beats EF-SignSGD{scales} end to end."
        verdicts = [faster(mine, theirs) for theirs, mine in times.values()]
        numbers = f"Seconds of coding and exchange to one loss, {sign} over {other}: {_over(ratios)}."
        said.append(Statement(f"{id}-end-to-end{end}", text, verdicts, numbers, "", whole + about, ratios))
        text = f"NUQSGD, {how}, takes fewer bits to the same loss than EF-SignSGD{scales}."
        said.append(Statement(f"{id}-fewer-bits{end}", text, **fewer(other, sign), bears_on=about or whole))
    text = "EF-SignSGD takes fewer bits to the same loss with two scales than with one."
    said.append(Statement("two-scales-fewer-bits", text, **fewer(TWO_SCALES, SIGN), source=OURS))
    for id, step, how in (
        ("common", COMMON, "with one step size for all"),
        ("best", None, "each with its best step size"),
    ):
        rows = {(r.problem, r.method): r for r in trained if r.step == step} if step else best(trained)
        for sign, (end, scales) in SIGNS.items():
            chosen, pair = [rows[p, method] for p in problems for method in (FOUR, sign)], [(FOUR, sign)]
            lower = Compare(lambda r: r.loss, pair, below, ("problem",), show=lambda r: number(r.loss.mean()))
            higher = Compare(lambda r: -r.accuracy, pair, below, ("problem",), show=_percent)
            text = (
                f"NUQSGD trains to a lower loss than EF-SignSGD{scales} in as many rounds, {how} (f - f* of {FOUR} and "
                f"{sign})."
            )
            said.append(Statement(f"lower-loss-{id}{end}", text, lower(chosen)))
            text = f"NUQSGD has a higher held-out accuracy than EF-SignSGD{scales}, {how} (in per cent)."
            said.append(Statement(f"higher-accuracy-{id}{end}", text, higher(chosen)))
    names = list(dict.fromkeys(row.input for row in sent))
    error = {(row.input, row.method): row.error for row in sent}
    text = "; ".join(
        f"{name}: {number(error[name, FOUR])}, {number(error[name, EIGHT])}, {number(error[name, BEST_RATIO])}"
        for name in names
    )
    said.append(
        Statement(
            "eight-bits",
            "8 bits a coordinate make the error of NUQSGD at most half that of 4 bits.",
            [error[name, EIGHT] <= 0.5 * error[name, FOUR] for name in names],
            f"Relative variance with 4 bits, with 8, and with 8 and the best ratio: {text}. Levels 1/2 "
            "apart leave up to 1/8 however many there are; a ratio nearer to 1 does not.",
        )
    )
    return said


def statements(sent, trained) -> list[Statement]:
    """The statements of the paper on the two, with verdicts."""
    return [*message_statements(sent), *training_statements(sent, trained)]


def bits_of_bucket(sent, method: str) -> int:
    """Bits of a bucket of signs, from the messages, whose length is a multiple of it."""
    row = next(row for row in sent if row.method == method)
    return round(row.bits * SMALL / row.d)


def draw(sent, curves):
    """Loss against bits for each problem, and time of a round against bandwidth."""
    small, large = f"NUQSGD 4 bits, {SMALL}", f"EF-sign, {LARGE}"
    shown = looks(("float32", SIGN, FOUR, TWO_SCALES, large, small, CODED, EIGHT))
    with canvas(1, len(curves) + 1, 0.95 * COLUMN) as (figure, grid):
        for axes, (name, seen) in zip(grid[0], curves.items(), strict=False):
            for method in (m for m in seen if m in shown):
                bits, gap = seen[method]
                axes.plot(bits[1:], gap[1:], markevery=4, label=method, markerfacecolor="none", **shown[method])
            axes.set(xscale="log", yscale="log", xlabel="payload of a worker, bits", title=name)
        grid[0, 0].set_ylabel(r"$f(x_t)-f^*$")
        axes, bandwidth = grid[0, -1], np.geomspace(1e8, 1e12, 41)
        for row in (row for row in sent if row.input == sent[0].input and row.method in shown):
            look = shown[row.method] | {"markevery": 8, "markerfacecolor": "none"}
            seconds = [1e3 * np.median(round_seconds(row, WORKERS, b)) for b in bandwidth]
            axes.plot(bandwidth / 1e9, seconds, label=row.method, **look)
        axes.set(xscale="log", yscale="log", xlabel="Gbit/s", ylabel="coding and exchange, ms")
        axes.set_title(f"a round, d = {sent[0].d:,}")
        legend_below(figure, axes, 4)
    return figure


def _tables(sent, trained) -> list[Table]:
    messages = [
        line(
            f"{row.input}: {row.method} | {number(row.bits / row.d)} | "
            f"{'-' if math.isnan(row.form) else number(row.form / row.d)} | {number(row.error)} | "
            f"{' | '.join(number(float(np.median(taken))) for taken in (row.encode, row.decode, row.memory))}"
        )
        for row in sent
    ]
    rounds = [
        (f"{row.input}: {row.method}", *(interval(1e3 * round_seconds(row, WORKERS, b)) for b in BANDWIDTHS))
        for row in sent
    ]
    fastest, by_step = best(trained, "rounds"), {(r.problem, r.method, r.step): r for r in trained}
    d, runs, spent = {row.input: row.d for row in sent}, [], []
    for (problem, method), row in best(trained).items():
        losses = [interval(by_step[problem, method, s].loss) for s in STEPS]
        taken, width = fastest[problem, method].rounds.mean(), fastest[problem, method].bits
        there = (f"{taken:.0f}", bits_text(taken * width * d[problem])) if taken < math.inf else ("never", "-")
        held, name = f"{interval(100.0 * row.accuracy, '{:.1f}'.format)} %", f"{problem}: {method}"
        runs.append((name, number(row.bits), *losses, held, *there))
        if not method.endswith("coded"):
            spent.append((name, *map(number, (row.gradient, row.coding, row.whole))))
    head = line("vector: method | bits | closed form | relative error | encode, ns | decode, ns | memory, ns")
    steps = (f"f - f*, {number(s * (1 - MOMENTUM))}/L" for s in STEPS)
    bandwidths = (f"{_giga(b)} Gbit/s" for b in BANDWIDTHS)
    simulator = line("problem: method | gradients | coding | all")
    return [
        Table("One message: bits and nanoseconds a coordinate", head, messages),
        Table("Coding and exchange of a round, milliseconds", ("vector: method", *bandwidths), rounds),
        Table("Training, by step size", ("problem: method", "bits", *steps, "held out", "rounds", "payload"), runs),
        Table("A round of all workers in the simulator, milliseconds", simulator, spent),
    ]


def _edges(trained) -> str:
    """The methods whose best step is the longest or the shortest that was tried."""
    tried = {row.step for row in trained}
    edges = [f"{row.problem}, {row.method}" for row in best(trained).values() if row.step in (min(tried), max(tried))]
    return f"for {'; '.join(edges)}" if edges else "for none"


def report(sent, trained, curves, lengths: dict, share: float, rounds: int, seeds: int) -> Study:
    """The study of these messages and runs; ``lengths`` of the vectors, by name."""
    d = lengths
    setting = (
        "EF-sign: the signs of a bucket times its mean magnitude, with error feedback; with two scales, entries below "
        "0 become their mean, the others theirs, the quantizer of 1-bit SGD. NUQSGD: levels 0, 2^-s, ..., "
        f"1/2, 1 of a bucket's 2-norm, s = {LEVELS[4]} with 4 bits and {LEVELS[8]} with 8, without feedback. The "
        f"number behind a name is the size of a bucket. Vectors: Gaussian (d = {d['Gaussian']:,}) and the mini-batch "
        f"gradient where float32 ends ({', '.join(f'{name}: d = {d[name]:,}' for name in curves)}); float32, one core, "
        f"the median of {np.size(sent[0].encode)} turns of all methods, a checksum included, the memory in NumPy. A "
        f"round with {WORKERS} workers is one "
        f"encoding, {WORKERS} decodings, the passes of the memory, and {WORKERS - 1} messages received one after the "
        f"other; gradients are left out. Training: {WORKERS} workers, batches of {BATCH}, momentum {MOMENTUM:g}, "
        f"l2 = {L2:g} as part of what is sent, {rounds} rounds, 80 % of the rows, "
        f"{seeds} seeds, steps {', '.join(number(s * (1 - MOMENTUM)) for s in STEPS)} over L, of which the best one "
        f"is an edge of the grid {_edges(trained)}; one for all is {number(COMMON * (1 - MOMENTUM))}/L. f - f* is the "
        "mean over the last quarter, held-out accuracy that of the step size with the lowest one. Rounds "
        f"and a worker's payload are those until f - f* is {share:g} (f(0) - f*), means over the seeds with the "
        "fastest step size; ± is the 95 % interval of a mean. The "
        "simulator counts bits without packing them; its times are the least between two records. Coded messages "
        "restore the same vectors; their bits are measured at mini-batch gradients along the run."
    )
    title = "EF-SignSGD against NUQSGD"
    alt = (
        "f - f* against the payload bits of a worker for logistic and softmax regression, both logarithmic, a line for "
        "each method; right: milliseconds of coding and exchange of a round against the bandwidth"
    )
    measured = {"messages": sent, "training": trained}
    said = statements(sent, trained)
    return Study(
        "sign-and-nuqsgd", title, setting, measured, _tables(sent, trained), said, lambda: draw(sent, curves), alt
    )
