"""Statements, tables and the figure of the questions on a network."""

from __future__ import annotations

import numpy as np

from ...plots.figure_style import colours
from ...plots.text import number
from ..network_questions import (
    FULL,
    MEMORIES,
    MESSAGES,
    MOMENTUM,
    ONE,
    OTHER_ROWS,
    OTHER_START,
    OTHERS,
    POINTS,
    SAME,
    Models,
    Options,
    Place,
    at_equal_loss,
)
from ..shared.network_training import (
    Trained,
    best_of,
    costs,
    end_mark,
    interval,
    network_text,
    percent,
    rule_text,
    step_text,
    task_tables,
    training_loss,
)
from ..shared.panels import canvas
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import FAILS, HOLDS, Statement, Trial, at_most, below

WALL = 0.01  # a barrier counts from this share of the loss at the start
LITTLE = 0.01  # one point of accuracy
POINT, ONE_MEAN = "(at most one point below).", "One mean of the weights at the end replaces consensus: own rows"
ALONE = "Consensus is not necessary: a worker alone with its own rows is at most one point below it."
MEAN = "The mean of the probabilities of models trained apart replaces consensus: own rows"
OF_USE = "Different minima are of use: with all rows for each, the mean of the probabilities is no worse."


def _merit(best: dict, pairs) -> list[Trial]:
    """Whether the first of each pair has the lower held-out loss where both have the same training loss."""
    trials = []
    for task in dict.fromkeys(task for task, _ in best):
        for first, second in pairs:
            row, other = best[task, first], best[task, second]
            if not (row.success and other.success):
                how = at_most(costs(row, "loss"), costs(other, "loss"))
                trials.append(Trial(how, f"{task}, {first}: a run diverged"))
                continue
            mine, theirs = at_equal_loss(row, other)
            how = below(mine, theirs)
            name = f"{task}, {first}"
            one, two = ({"loss": float(v.mean()), "step": of.step} for v, of in ((mine, row), (theirs, other)))
            shown = (
                f"{name}: {number(one['loss'])} with step {one['step']:g} against {number(two['loss'])} with "
                f"{two['step']:g}, difference {interval(mine - theirs)}"
            )
            trials.append(Trial(how, shown, {name: {"first": one, "second": two}}))
    return trials


def _against(models: list[Models], rows: str, way: str, of: str, margin: float) -> list[Trial]:
    """Whether models without consensus reach the accuracy of those with it, up to a margin."""
    trials, found = [], {(one.task, one.way): one for one in models if one.rows == rows}
    for task in dict.fromkeys(one.task for one in models):
        mine, theirs = getattr(found[task, way], of), found[task, ONE].single
        how = at_most(-mine, -theirs, margin)
        values = {task: {"apart": 100 * float(mine.mean()), "consensus": 100 * float(theirs.mean())}}
        trials.append(Trial(how, f"{task}: {interval(100 * mine)} against {interval(100 * theirs)} %", values))
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
    high = [f"{one.task}, {one.method}" for one, how in zip(compressed, walls.trials, strict=True) if how == HOLDS]
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
    names = list(dict.fromkeys(task for task, _ in best))
    with canvas(len(names), 3, 1.2 + 2.2 * len(names)) as (figure, grid):
        for axes, task in zip(grid, names, strict=True):
            for k, method in enumerate(dict.fromkeys(method for _, method in best)):
                row = best.get((task, method))
                if row is not None and row.success:
                    paths = row.loss.mean(axis=0, dtype=float), row.test_loss.mean(axis=0, dtype=float)
                    repeated = (
                        {"marker": "d", "markevery": 4, "markersize": 3} if k >= len(colours()) else {"marker": ""}
                    )
                    axes[0].plot(*paths, label=method, linewidth=0.9, color=colours()[k % len(colours())], **repeated)
                    places_here = [one for one in where if (one.task, one.method) == (task, method)]
                    axes[1].plot(
                        [one.away.mean() for one in places_here],
                        [one.wall.mean() for one in places_here],
                        linestyle="",
                        marker="d" if k >= len(colours()) else "o",
                        color=colours()[k % len(colours())],
                    )
            for one in where:
                if one.task == task and one.method in (OTHER_ROWS, OTHER_START):
                    axes[1].annotate(
                        one.method.removeprefix("float32, "),
                        (one.away.mean(), one.wall.mean()),
                        xytext=(-4, 0) if one.method == OTHER_START else (0, 6),
                        textcoords="offset points",
                        fontsize=6,
                        ha="right" if one.method == OTHER_START else "left",
                        va="center",
                    )
                    axes[1].plot([one.away.mean()], [one.wall.mean()], color="0.4", marker="x", linestyle="")
            here = [one for one in models if one.task == task]
            for k, (of, label) in enumerate(
                (("single", "one model"), ("averaged", "mean of weights"), ("together", "mean of probabilities"))
            ):
                axes[2].plot(
                    [100.0 * getattr(one, of).mean() for one in here],
                    np.arange(len(here)) + 0.15 * (k - 1),
                    linestyle="",
                    marker="os^"[k],
                    markersize=3,
                    color=("#000000", "#0072B2", "#D55E00")[k],
                    label=label,
                )
            axes[0].set(xlabel="training loss", ylabel="held-out loss", xscale="log", yscale="log", title=task)
            axes[1].set(xlabel="relative distance", ylabel="barrier over f at the start", title=task)
            axes[2].set_yticks(range(len(here)), [f"{k + 1}" for k in range(len(here))])
            axes[2].set(xlabel="held-out accuracy, %", ylabel="row of the table", title=task)
            axes[2].invert_yaxis()
        handles, labels = grid[0, 0].get_legend_handles_labels()
        more, names_of = grid[0, 2].get_legend_handles_labels()
        figure.legend([*handles, *more], [*labels, *names_of], loc="outside lower center", ncols=3)
    return figure


def report(rows, where, models, sizes: dict, options: Options) -> Study:
    """The study of these runs; ``sizes`` has n and d of each task."""

    def cells(row: Trained) -> tuple[str, ...]:
        held = f"{interval(row.test_loss[:, -1])} | {percent(row)}" if row.success else "- | -"
        return line(f"{row.method} | {step_text(row)} | {training_loss(row)} | {held}")

    ends = [
        line(
            f"{one.task}, {one.method} | {interval(one.away)} | {interval(one.wall)} | {interval(100 * one.differs)} | "
            f"{interval(one.sharpness)}"
        )
        for one in where
    ]
    head = "method | relative distance | barrier | classified differently from full precision, % | largest curvature"
    made = task_tables(rows, sizes, "method | step | training loss | held-out loss | held-out accuracy, %", cells)
    made.append(Table("Ends, beside that of full precision with the same start and rows", line(head), ends))
    scores = [
        line(
            f"{one.task}, {one.way} | {one.rows} | "
            f"{number(one.step)}{end_mark(one.step * (1.0 - MOMENTUM), options.grid)} | {interval(100 * one.single)} | "
            f"{interval(100 * one.averaged)} | {interval(100 * one.together)}"
        )
        for one in models
    ]
    head = "models | rows | step | one model, % | mean of weights, % | mean of probabilities, %"
    made.append(Table("With and without consensus", line(head), scores))
    setting_text = (
        f"{network_text(options, sizes)}{options.rows} rows for training, a fifth of the data held out. "
        f"{options.workers} workers with batches of {options.batch}, momentum {MOMENTUM:g}, {options.steps} rounds; "
        f"each method has the step of {', '.join(f'{step:g}' for step in options.grid)} with the least training loss, "
        f"{rule_text(options)} Error "
        f"compressors serve ConEF with random blocks of {100 * options.share:g} %; the scaled ones are the unbiased "
        "ones times 1/(1 + omega). The distance to the weights of full precision is divided by how far those moved "
        "from the start; the barrier is the largest height of the loss on the segment between both, above the straight "
        f"line, over the loss at the start ({POINTS} points). The last table has no momentum, and its candidate steps "
        f"are {1.0 / (1.0 - MOMENTUM):.3g} times as long. Without consensus, each worker trains alone, with as many "
        f"gradients; with own rows it has an {options.workers}th of them. Without consensus the step is the one with "
        "the least "
        "mean loss of the single models on all training rows; it is not tuned for the means. Hidden units were not "
        "matched, so part of the barrier between two starts may be their order."
    )
    return Study(
        "network-questions",
        "Unbiasedness, minima and consensus on a network",
        setting_text,
        {"training": rows, "ends": where, "models": models},
        made,
        statements(rows, where, models),
        lambda: draw(rows, where, models),
        "Held-out against training loss, barriers against distances, and held-out accuracy with and without consensus",
    )
