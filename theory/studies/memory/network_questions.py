"""Questions of the talk on ConEF, on a network: unbiased compressors and generalization, minima, and consensus.

The talk says that an unbiased error compressor has "some generalization merits", and ends with questions: is consensus
necessary, and how can one use models that converge to different local minima?  Here a network with one hidden layer is
trained on few rows, so that it fits them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...cluster import run
from ...compressors import QSGD, Bucketed, Identity, Natural, RandK, RandomBlock, ScaledSign, TopK, scaled
from ...core import require, setting
from ...methods import ContractiveErrorFeedback, ErrorFeedback, LocalSGD, NoFeedback, ParallelSGD
from ...methods.schedules import Constant
from ...plots.appearance import number
from ...problems import accuracy, gradient, initial_point, value
from ...problems.evaluate import rows_between
from ...problems.matrix import to_scipy
from ...problems.network import layer_shapes, layers
from ...reporting.progress import track
from ..shared import networks
from ..shared.curves import canvas, looks
from ..shared.networks import Task, Trained, best_of, costs, interval
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import FAILS, HOLDS, Statement, Trial, at_most, below, word

MOMENTUM = 0.9
FULL = "float32"
BUCKET = 40
MEMORIES = (  # unbiased, and the same message times 1/(1 + omega), which contracts
    ("ConEF, QSGD 15 levels", "ConEF, QSGD 15 levels, scaled"),
    ("ConEF, natural", "ConEF, natural, scaled"),
)
MESSAGES = (  # unbiased, and biased with a memory, of about as many bits
    ("random block, unbiased", "random block, memory"),
    ("QSGD 1 level", "scaled sign, memory"),
    ("rand-k, unbiased", "top-k, memory"),
)
OTHER_ROWS, OTHER_START = "float32, other rows", "float32, other start"
ONE, TOGETHER, LOCAL, SAME, OTHERS = (
    "consensus in every round",
    "consensus after every 10 steps",
    "consensus after every 100 steps",
    "no consensus, one start",
    "no consensus, other starts",
)
PERIODS = {ONE: 1, TOGETHER: 10, LOCAL: 100}  # local steps
WALL = 0.01  # a barrier counts from this share of the loss at the start
LITTLE = 0.01  # one point of accuracy
POINTS, TURNS = 11, 40  # along a segment; of the power iteration


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    tasks : tuple of str
        "digits", and "topics" where the multi-label file of RCV1 exists.
    rows : int
        Rows for training.
    workers, batch, steps, seeds : int
    share : float
        Of the coordinates in a random block.
    width, features : int
        Hidden units, and the number of the most frequent features of the topics.
    l2 : float
    grid : tuple of float
        Candidate step sizes.
    """

    tasks: tuple = ("digits", "topics")
    rows: int = 480
    workers: int = 8
    batch: int = 8
    steps: int = 400
    seeds: int = 6
    share: float = 0.1
    width: int = 32
    features: int = 2000
    l2: float = 1e-4
    grid: tuple = (0.0125, 0.05, 0.2, 0.8)

    def domain(self):
        """Reject values outside the domain."""
        networks.check_options(self)
        for name, least in (("steps", 1), ("rows", 8 * self.workers)):
            require(getattr(self, name) >= least, name, getattr(self, name), f"an integer, at least {least}")
        require(0.0 < self.share < 1.0, "share", self.share, "a number between 0 and 1")


class Place(NamedTuple):
    """Where a method ends, beside full precision with the same start and rows.

    Attributes
    ----------
    task, method : str
    away : ndarray, shape (seeds,)
        Distance to the weights of full precision, divided by how far those moved from the start.
    wall : ndarray, shape (seeds,)
        The barrier between the two, over the loss at the start.
    differs : ndarray, shape (seeds,)
        Share of the held-out rows that get different classes.
    sharpness : ndarray, shape (seeds,)
        The largest eigenvalue of the Hessian there, or somewhat less: a Rayleigh quotient.
    """

    task: str
    method: str
    away: np.ndarray
    wall: np.ndarray
    differs: np.ndarray
    sharpness: np.ndarray


class Models(NamedTuple):
    """Held-out accuracies with and without consensus, each for every seed.

    Attributes
    ----------
    task, way, rows : str
        ``rows`` is "shared" or "own": whether each worker has a part of the rows for itself.
    step : float
    single, averaged, together : ndarray, shape (seeds,)
        Of one worker's model, in the mean; of the mean of the weights; of the mean of the probabilities.
    """

    task: str
    way: str
    rows: str
    step: float
    single: np.ndarray
    averaged: np.ndarray
    together: np.ndarray


# --- generalization ---------------------------------------------------------------------------------------------------


def plans(task: Task, options: Options) -> dict:
    """By group and method: a function of the step that returns the method."""
    d = task.problem.d
    k = max(1, int(options.share * d))

    def sgd(compressor, feedback: Any = NoFeedback()) -> Callable:  # noqa: B008  # a value
        return lambda step: ParallelSGD(
            compressor, step=Constant(step), feedback=feedback, batch=options.batch, momentum=MOMENTUM
        )

    block, fine = RandomBlock(k), Bucketed(QSGD(15), BUCKET)
    found: dict = {("full precision", FULL): sgd(Identity())}
    memories: list[Any] = [fine, scaled(fine, d), Natural(), scaled(Natural(), d)]
    for name, c in zip((name for pair in MEMORIES for name in pair), memories, strict=True):
        found["error compressors", name] = sgd(block, ContractiveErrorFeedback(c))
    messages = (
        sgd(RandomBlock(k, unbiased=True)),
        sgd(block, ErrorFeedback()),
        sgd(Bucketed(QSGD(1), 512)),
        sgd(ScaledSign(), ErrorFeedback()),
        sgd(RandK(k, unbiased=True)),
        sgd(TopK(k), ErrorFeedback()),
    )
    for name, plan in zip((name for pair in MESSAGES for name in pair), messages, strict=True):
        found["messages", name] = plan
    found["messages", "top-k"] = sgd(TopK(k))
    return found


def at_equal_loss(row: Trained, other: Trained) -> tuple[np.ndarray, np.ndarray]:
    """Held-out losses of both, seed by seed, when the training loss first is what both reach."""
    found = []
    for s in range(min(len(row.loss), len(other.loss))):
        goal = max(float(row.loss[s].min()), float(other.loss[s].min()))
        pair = []
        for one in (row, other):
            k = int(np.flatnonzero(one.loss[s] <= goal)[0])
            if k == 0:
                pair.append(float(one.test_loss[s, 0]))
                continue
            above, below = float(one.loss[s, k - 1]), float(one.loss[s, k])
            part = (above - goal) / (above - below)
            pair.append(float((1.0 - part) * one.test_loss[s, k - 1] + part * one.test_loss[s, k]))
        found.append(pair)
    mine, theirs = np.array(found).T
    return mine, theirs


# --- minima -----------------------------------------------------------------------------------------------------------


def barrier(problem, x, y) -> float:
    """The largest height of f on the segment from x to y above the straight line between its ends; at least 0."""
    parts = np.linspace(0.0, 1.0, POINTS)
    heights = np.array([value(problem, (1.0 - t) * x + t * y) for t in parts])
    return float(np.max(heights - (1.0 - parts) * heights[0] - parts * heights[-1]))


def sharpness(problem, x, seed: int = 0) -> float:
    """The eigenvalue of the Hessian at x of largest magnitude, by power iteration with differences of gradients.

    After so many turns it is a Rayleigh quotient, whose magnitude is at most that of the eigenvalue.
    """
    x, v = np.asarray(x, float), np.random.default_rng(seed).standard_normal(x.size)
    h, found = 1e-4 * max(1.0, float(np.linalg.norm(x))), 0.0
    for _ in range(TURNS):
        v /= np.linalg.norm(v)
        image = (gradient(problem, x + h * v) - gradient(problem, x - h * v)) / (2.0 * h)
        found, v = float(image @ v), image
    return found


def probabilities(problem, x) -> np.ndarray:
    """Of the classes, for each row."""
    W, V = (x[layer].reshape(shape) for layer, shape in zip(layers(problem), layer_shapes(problem), strict=True))
    Z = np.tanh(to_scipy(problem.A) @ W) @ V
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def places(task: Task, ends: dict[str, np.ndarray], starts: np.ndarray) -> list[Place]:
    """Distances, barriers and curvature at the ends of each method, shape (seeds, d)."""
    found, problem = [], task.problem
    for method, end in ends.items():
        rows = []
        for s, (x, full, start) in enumerate(zip(end, ends[FULL], starts, strict=True)):
            classes, others = (probabilities(task.test, one).argmax(axis=1) for one in (x, full))
            way = np.linalg.norm(full - start)
            walls = barrier(problem, x, full) / value(problem, start)
            rows.append((np.linalg.norm(x - full) / way, walls, np.mean(classes != others), sharpness(problem, x, s)))
        found.append(Place(task.name, method, *np.array(rows).T))
    return found


def ends_of(task: Task, steps: dict[str, float], options: Options, seeds) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The last weights of each method with its step, and of full precision with other rows and starts; the starts."""
    known = {method: plan for (_, method), plan in plans(task, options).items()}
    starts = np.array([initial_point(task.problem, seed) for seed in seeds])

    def end(method: str, seed: int, x0):
        plan = known[method](steps[method])
        return run(
            plan, task.problem, workers=options.workers, steps=options.steps, seed=seed, x0=x0, dtype=np.float32,
            record_every=options.steps,
        ).last.astype(float)  # fmt: skip

    found = {
        method: np.array([end(method, seed, x0) for seed, x0 in zip(seeds, starts, strict=True)])
        for method in track(steps, f"{task.name}, minima")
    }
    found[OTHER_ROWS] = np.array([end(FULL, seed + 1, x0) for seed, x0 in zip(seeds, starts, strict=True)])
    others = [initial_point(task.problem, seed + 1) for seed in seeds]
    found[OTHER_START] = np.array([end(FULL, seed, x0) for seed, x0 in zip(seeds, others, strict=True)])
    return found, starts


# --- consensus --------------------------------------------------------------------------------------------------------


def _models(task: Task, way: str, rows: str, step: float, seed: int, options: Options) -> list[np.ndarray]:
    """The last weights: one model with consensus, one of each worker without."""
    N, problem = options.workers, task.problem
    common: dict = {"steps": options.steps, "dtype": np.float32, "record_every": options.steps}
    if way in PERIODS:
        shards = "shared" if rows == "shared" else "contiguous"
        plan = LocalSGD(step=Constant(step), local_steps=PERIODS[way], batch=options.batch, shards=shards)
        return [run(plan, problem, workers=N, seed=seed, **common).last.astype(float)]
    alone, found = ParallelSGD(step=Constant(step), batch=options.batch), []
    for w in range(N):
        part = problem if rows == "shared" else rows_between(problem, w * problem.n // N, (w + 1) * problem.n // N)
        x0 = initial_point(problem, seed if way == SAME else seed + w)
        found.append(run(alone, part, workers=1, seed=seed + w, x0=x0, **common).last.astype(float))
    return found


def consensus(task: Task, options: Options, seeds) -> list[Models]:
    """Accuracies with and without consensus; every worker takes the same number of gradients, without momentum.

    Each way has the step with the least mean loss of its models on all rows for training, with the first seed.
    """
    found, test, problem = [], task.test, task.problem
    grid = [step / (1.0 - MOMENTUM) for step in options.grid]  # as far as with momentum
    ways = [*(way for way, H in PERIODS.items() if options.steps % H == 0), SAME, OTHERS]
    for rows, way in track([(rows, way) for rows in ("shared", "own") for way in ways], f"{task.name}, consensus"):
        tried = {step: _models(task, way, rows, step, seeds[0], options) for step in grid}
        losses = [np.mean([value(problem, x) for x in tried[step]]) for step in grid]
        best = grid[int(np.nanargmin(losses))]
        scores = []
        for ends in [tried[best], *(_models(task, way, rows, best, seed, options) for seed in seeds[1:])]:
            joint = np.mean([probabilities(test, x) for x in ends], axis=0).argmax(axis=1)
            single, averaged = np.mean([accuracy(test, x) for x in ends]), accuracy(test, np.mean(ends, axis=0))
            scores.append((single, averaged, np.mean(joint == test.b)))
        found.append(Models(task.name, way, rows, best, *np.array(scores).T))
    return found


def collect(quick: bool, seed: int, topics: str | None, options: Options) -> dict:
    """Train each task with all methods, compare where they end, and train with and without consensus."""
    if quick:
        options = options._replace(
            tasks=("digits",), rows=160, steps=min(options.steps, 60), seeds=2, width=8, grid=(0.05, 0.2), workers=4
        )
    rows: list[Trained] = []
    where: list[Place] = []
    models: list[Models] = []
    seeds, found = networks.seeds_of(options, seed, "network-questions"), networks.tasks(options, topics, options.rows)
    spend = {"workers": options.workers, "records": 40, "steps": options.steps}
    for task in found:
        trained = networks.train(task, plans(task, options), options.grid, seeds, **spend)
        rows += trained
        steps = {method: row.step for (_, method), row in best_of(trained).items() if row.success}
        where += places(task, *ends_of(task, steps, options, seeds))
        models += consensus(task, options, seeds)
    kept = {"rows": networks.recorded(rows, ("loss", "test_loss")), "where": where, "models": models}
    return kept | {"sizes": networks.sizes_of(found), "options": options}


# --- what holds -------------------------------------------------------------------------------------------------------

POINT, ONE_MEAN = "(at most one point below).", "One mean of the weights at the end replaces consensus: own rows"
ALONE = "Consensus is not necessary: a worker alone with its own rows is at most one point below it."
MEAN = "The mean of the probabilities of models trained apart replaces consensus: own rows"
OF_USE = "Different minima are useful: with all rows for each, the mean of the probabilities is no worse."


def _merit(best: dict, pairs) -> list[Trial]:
    """Whether the first of each pair has the lower held-out loss where both have the same training loss."""
    trials = []
    for task in dict.fromkeys(task for task, _ in best):
        for first, second in pairs:
            row, other = best[task, first], best[task, second]
            if not (row.success and other.success):
                how = at_most(costs(row, "loss"), costs(other, "loss"))
                trials.append(how._replace(shown=f"{task}, {first}: a run diverged"))
                continue
            mine, theirs = at_equal_loss(row, other)
            name = f"{task}, {first}"
            one, two = ({"loss": float(v.mean()), "step": of.step} for v, of in ((mine, row), (theirs, other)))
            shown = (
                f"{name}: {number(one['loss'])} with step {one['step']:g} against {number(two['loss'])} with "
                f"{two['step']:g}"
            )
            trials.append(below(mine, theirs)._replace(shown=shown, values={name: {"first": one, "second": two}}))
    return trials


def _against(models: list[Models], rows: str, way: str, of: str, margin: float) -> list[Trial]:
    """Whether models without consensus reach the accuracy of those with it, up to a margin."""
    trials, found = [], {(one.task, one.way): one for one in models if one.rows == rows}
    for task in dict.fromkeys(one.task for one in models):
        mine, theirs = getattr(found[task, way], of), found[task, ONE].single
        values = {task: {"apart": 100 * float(mine.mean()), "consensus": 100 * float(theirs.mean())}}
        shown = f"{task}: {interval(100 * mine)} against {interval(100 * theirs)} %"
        trials.append(at_most(-mine, -theirs, margin)._replace(shown=shown, values=values))
    return trials


def statements(rows: list[Trained], where: list[Place], models: list[Models]) -> list[Statement]:
    """Answers to the questions, each by intervals over the seeds."""
    best, by = best_of(rows), {(one.task, one.method): one for one in where}
    merits, consensus = ("conef/slide-unbiased-c-has-some",), ("conef/slide-is-consensus-necessary",)
    compressed = [one for one in where if one.method not in (FULL, OTHER_ROWS, OTHER_START)]
    names = list(dict.fromkeys(one.task for one in where))
    farther = Statement(
        "farther-than-a-start",
        "Compression leads farther from the weights of full precision than another start does.",
        [below(by[one.task, OTHER_START].away, one.away) for one in compressed],
        source=OURS,
    )
    least, most = (
        {task: number(pick(o.away.mean() for o in compressed if o.task == task)) for task in names}
        for pick in (min, max)
    )
    numbers = "; ".join(
        f"{task}: {least[task]} to {most[task]} of the way, other rows {interval(by[task, OTHER_ROWS].away)}, another "
        f"start {interval(by[task, OTHER_START].away)}"
        for task in names
    )
    count = f"{farther.count()} of {len(farther.trials)} are farther, {farther.count(FAILS)} nearer"
    walls = Statement(
        "barrier",
        f"Different minima: a barrier above {100 * WALL:g} % of the loss at the start lies between the ends of "
        "compressed and of full precision.",
        [below(-one.wall, -WALL) for one in compressed],
        source=OURS,
    )
    high = [
        f"{one.task}, {one.method}" for one, how in zip(compressed, walls.trials, strict=True) if word(how) == HOLDS
    ]
    rows_and_start = [[interval(by[task, other].wall) for other in (OTHER_ROWS, OTHER_START)] for task in names]
    others = "; ".join(
        f"{task}: other rows {other}, another start {start}"
        for task, (other, start) in zip(names, rows_and_start, strict=True)
    )
    listed = f" ({', '.join(high)})" if high else ""
    return [
        Statement(
            "unbiased-memory",
            "An unbiased error compressor generalizes better (held-out loss at equal training loss; steps differ).",
            _merit(best, MEMORIES),
            bears_on=merits,
        ),
        Statement(
            "unbiased-messages",
            "Unbiased messages generalize better than biased ones with a memory (likewise).",
            _merit(best, MESSAGES),
            source=OURS,
            bears_on=merits,
        ),
        farther._replace(said=f"{count}; {numbers}."),
        walls._replace(said=f"{len(high)} of {len(walls.trials)}{listed}; {others}."),
        *(
            Statement(id, text, _against(models, own, way, of, margin), source=OURS, bears_on=consensus)
            for id, own, way, of, margin, text in (
                ("alone", "own", SAME, "single", LITTLE, ALONE),
                ("one-mean-one-start", "own", SAME, "averaged", LITTLE, f"{ONE_MEAN}, one start {POINT}"),
                ("one-mean-other-starts", "own", OTHERS, "averaged", LITTLE, f"{ONE_MEAN}, other starts {POINT}"),
                ("mean-of-probabilities", "own", OTHERS, "together", LITTLE, f"{MEAN} {POINT}"),
                ("minima-of-use", "shared", OTHERS, "together", 0.0, OF_USE),
            )
        ),
    ]


def draw(rows: list[Trained], where: list[Place], models: list[Models]):
    """For each task held-out against training loss, barriers against distances, and accuracies without consensus."""
    best = best_of(rows)
    names, methods = ({key[k]: None for key in best} for k in (0, 1))
    look_of = looks(methods)
    with canvas(len(names), 3, 1.2 + 2.2 * len(names)) as (figure, grid):
        for (losses, ends, held), task in zip(grid, names, strict=True):
            for method in methods:
                row, look = best.get((task, method)), look_of[method] | {"markerfacecolor": "none"}
                if row is not None and row.success:
                    paths = row.loss.mean(axis=0, dtype=float), row.test_loss.mean(axis=0, dtype=float)
                    losses.plot(*paths, label=method, linewidth=0.9, markevery=4, **look)
                    here = [one for one in where if (one.task, one.method) == (task, method)]
                    at, heights = [one.away.mean() for one in here], [one.wall.mean() for one in here]
                    ends.plot(at, heights, **look | {"linestyle": ""})
            for one in (one for one in where if one.task == task and one.method in (OTHER_ROWS, OTHER_START)):
                point, name = (one.away.mean(), one.wall.mean()), one.method.removeprefix("float32, ")
                side = ("right", (-4, 0)) if one.method == OTHER_START else ("left", (0, 6))
                place = dict(zip(("ha", "xytext"), side, strict=True), va="center", textcoords="offset points")
                ends.annotate(name, point, fontsize=6, **place)
                ends.plot(*([value] for value in point), color="0.4", marker="x", linestyle="")
            apart = [one for one in models if one.task == task]
            ways = {"single": "one model", "averaged": "mean of weights", "together": "mean of probabilities"}
            for (of, label), mark, color in zip(ways.items(), "os^", ("#000000", "#0072B2", "#D55E00"), strict=True):
                shares = [100.0 * getattr(one, of).mean() for one in apart]
                points = {"linestyle": "", "marker": mark, "markersize": 3, "color": color, "label": label}
                held.plot(shares, np.arange(len(apart)) + 0.15 * ("os^".index(mark) - 1), **points)
            losses.set(xlabel="training loss", ylabel="held-out loss", xscale="log", yscale="log", title=task)
            ends.set(xlabel="relative distance", ylabel="barrier over f at the start", title=task)
            held.set_yticks(range(len(apart)), [f"{k + 1}" for k in range(len(apart))])
            held.set(xlabel="held-out accuracy, %", ylabel="row of the table", title=task)
            held.invert_yaxis()
        handles, labels = grid[0, 0].get_legend_handles_labels()
        more, names_of = grid[0, 2].get_legend_handles_labels()
        figure.legend([*handles, *more], [*labels, *names_of], loc="outside lower center", ncols=3)
    return figure


def report(rows, where, models, sizes: dict, options: Options) -> Study:
    """The study of these runs; ``sizes`` has n and d of each task."""
    ends = [
        (f"{one.task}, {one.method}", *map(interval, (one.away, one.wall, 100 * one.differs, one.sharpness)))
        for one in where
    ]
    head = "method | relative distance | barrier | classified differently from full precision, % | largest curvature"
    of_tasks = "method | step | training loss | held-out loss | held-out accuracy, %"
    made = networks.task_tables(rows, sizes, of_tasks)
    made.append(Table("Ends, beside that of full precision with the same start and rows", line(head), ends))
    scores = [
        (
            f"{one.task}, {one.way}",
            one.rows,
            f"{number(one.step)}{networks.end_mark(one.step * (1.0 - MOMENTUM), options.grid)}",
            *(interval(100 * shares) for shares in (one.single, one.averaged, one.together)),
        )
        for one in models
    ]
    head = "models | rows | step | one model, % | mean of weights, % | mean of probabilities, %"
    made.append(Table("With and without consensus", line(head), scores))
    setting_text = (
        f"{networks.network_text(options, sizes)}{options.rows} rows for training, a fifth of the data held out. "
        f"{options.workers} workers with batches of {options.batch}, momentum {MOMENTUM:g}, {options.steps} rounds; "
        f"each method has the step of {', '.join(f'{step:g}' for step in options.grid)} with the least training loss, "
        f"{networks.rule_text(options)} Error compressors are used for ConEF with random blocks of"
        f" {100 * options.share:g} %; the scaled ones are the unbiased "
        "ones times 1/(1 + omega). The distance to the weights of full precision is divided by how far those moved "
        "from the start; the barrier is the largest height of the loss on the segment between both, above the straight "
        f"line, over the loss at the start ({POINTS} points). The last table has no momentum, and its candidate steps "
        f"are {1.0 / (1.0 - MOMENTUM):.3g} times as long. Without consensus, each worker trains alone, with as many "
        f"gradients; with own rows it has an {options.workers}th of them. Without consensus the step is the one with "
        "the least "
        "mean loss of the single models on all training rows; it is not tuned for the means. Hidden units were not "
        "matched, so part of the barrier between two starts may be their order."
    )
    title = "Unbiasedness, minima and consensus on a network"
    said = statements(rows, where, models)
    alt = (
        "Left: held-out against training loss, nearly one curve for all methods. Middle: barriers against distances, "
        "near 0 but for another start. Right: held-out accuracy of one model, of mean weights and of mean probabilities"
    )
    measured = {"training": rows, "ends": where, "models": models}
    return Study("network-questions", title, setting_text, measured, made, said, lambda: draw(rows, where, models), alt)
