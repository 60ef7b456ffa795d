"""Comparisons over several seeds: means with intervals, what is within noise, and what is saved."""

from __future__ import annotations

import csv
import functools
import io
import multiprocessing
import re
from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import t as student

import theory as th
from theory.core import setting

PROBLEM = th.quadratic(np.ones(6), covariance=1.0)
START = dict(x0=np.full(6, 2.0), workers=2, steps=40)
METHODS = {
    "dense": th.ParallelSGD(step=0.1),
    "again": th.ParallelSGD(th.Identity(), step=0.1),
    "slow": th.ParallelSGD(step=0.001),
}


@pytest.fixture(scope="module")
def compared():
    return th.compare(METHODS, PROBLEM, seed=range(4), x="bits", **START)


def test_the_keys_of_a_dict_are_the_labels(compared):
    assert compared.labels == ("dense", "again", "slow")
    with pytest.raises(ValueError, match="labels: got .*, allowed: None with a dict"):
        th.compare(METHODS, PROBLEM, labels=["a", "b", "c"], **START)


def test_a_row_has_the_mean_and_half_of_the_interval(compared):
    row = compared.rows[0]
    ends = np.array([th.run(METHODS["dense"], PROBLEM, seed=seed, **START).fun for seed in range(4)]) - compared.lower
    half = student.ppf(0.975, 3) * ends.std(ddof=1) / 2.0
    assert row["gap"] == pytest.approx(ends.mean()) and row["gap_half"] == pytest.approx(half)
    assert (row["seeds"], row["steps"], row["samples"]) == (4, 40, 80)
    assert row["bits_up_half"] == 0.0 and row["seconds_half"] > 0.0
    line = next(line for line in compared.table.splitlines() if line.startswith("dense"))
    mean, shown = map(float, re.findall(r"(\S+) ± (\S+)", line)[0])
    assert mean == pytest.approx(row["gap"], rel=5e-3) and shown == pytest.approx(half, rel=5e-3)


def test_what_is_within_noise_of_the_lowest_is_marked(compared):
    ties = {row["label"]: row["within_noise"] for row in compared.rows}
    assert (
        sorted(ties.values()) == [False, False, True] and not ties["slow"]
    )  # the two that are equal, and not the slow
    marked = [line for line in compared.table.splitlines() if "≈" in line]
    assert len(marked) == 2 and "within noise of the lowest" in marked[1]
    assert "± half of their intervals of 95%" in compared.table and "≈" in compared._repr_html_()


def test_one_seed_has_no_interval_and_marks_nothing():
    alone = th.compare(METHODS, PROBLEM, seed=3, **START)
    assert "±" not in alone.table and "≈" not in alone.table
    assert all(np.isnan(row["gap_half"]) and not row["within_noise"] for row in alone.rows)


def test_short_times_are_not_zero(compared):
    for line in compared.table.splitlines()[4:7]:
        assert not re.search(r"\b0\.00\b", line), line


def test_rows_as_a_table_of_pandas_and_as_csv(compared, tmp_path):
    frame = pytest.importorskip("pandas") and compared.to_pandas()
    assert list(frame.index) == list(compared.labels) and frame.loc["slow", "gap"] == compared.rows[2]["gap"]
    read = list(csv.DictReader(io.StringIO(compared.to_csv())))
    assert [float(row["gap_half"]) for row in read] == [row["gap_half"] for row in compared.rows]
    assert compared.to_csv(tmp_path / "rows.csv") is None
    assert (tmp_path / "rows.csv").read_text() == compared.to_csv()


def test_a_comparison_is_read_as_it_was_saved(compared, tmp_path):
    compared.save(tmp_path / "kept")
    again = th.load_result(tmp_path / "kept")
    assert type(again) is type(compared) and again.table == compared.table and again.x == "bits"
    assert again.rows == compared.rows
    further = th.run(METHODS["dense"], PROBLEM, resume=again.repeats[0][1], seed=2, **START | {"steps": 50})
    assert further.nit == 50


def test_the_theorem_of_a_step_is_said_below_the_table():
    pair = {"dense": METHODS["dense"], "rand": th.ParallelSGD(th.RandK(3, unbiased=True), step=0.1)}
    found = th.compare(pair, PROBLEM, step="theory", **START)
    assert (
        "dense: step Constant(eta=1.0): 1/L, down to a floor of the noise, of bounds.bottou_constant_step"
        in found.table
    )
    assert "rand: step Constant(eta=0.6666666666666666): 1/(L (1 + omega/N))" in found.table
    with pytest.raises(th.NoTheoremError):
        th.compare({"top": th.ParallelSGD(th.TopK(1), step=0.1)}, PROBLEM, step="theory", **START)


def test_epochs_and_targets_are_passed_on():
    problem = th.logistic((np.eye(4), [1, -1, 1, -1]), l2=0.5)
    found = th.compare({"one": th.ParallelSGD(step=0.1)}, problem, workers=2, epochs=3, target={"rounds": 4})
    assert found.rows[0]["rounds"] == 4 and found.rows[0]["samples"] == 8


# --- a grid -----------------------------------------------------------------------------------------------------------

GRID = {"compressor": [None, th.TopK(2)], "step": [0.05, 0.1]}


def sweep(**options):
    return th.compare(th.ParallelSGD(), PROBLEM, grid=GRID, seed=(0, 5), record_every=10, **START | options)


def test_a_grid_is_a_long_table_of_separate_runs():
    """One row for each cell, seed and record, with the numbers of the runs that a loop would make."""
    table = sweep().to_pandas()
    named = ["method", "compressor", "step_size", "seed", "step", "bits_up", "bits_down", "seconds", "fun", "gap"]
    assert set(named) <= set(table.columns) and len(table) == 4 * 2 * 5
    for compressor, text in ((None, "full precision"), (th.TopK(2), "TopK(k=2)")):
        for step in GRID["step"]:
            for seed in (0, 5):
                alone = th.run(th.ParallelSGD(compressor, step), PROBLEM, seed=seed, record_every=10, **START).history
                mine = table[(table.compressor == text) & (table.step_size == step) & (table.seed == seed)]
                for column, name in (("step", "step"), ("bits_up", "bits_up"), ("fun", "f")):
                    assert mine[column].tolist() == alone[name].tolist()
                assert mine.gap.tolist() == alone["f"].tolist()  # f* is 0


def test_axes_are_fields_arguments_of_run_or_those_of_a_function(tmp_path):
    many = th.compare(th.ParallelSGD(step=0.1), PROBLEM, grid={"workers": [1, 3]}, workers=2, steps=4)
    assert many.rows[0]["samples"] == 4 and many.rows[1]["samples"] == 12 and many.labels == ("workers=1", "workers=3")
    make = lambda k, eta: th.ParallelSGD(th.TopK(k), step=eta / k)  # noqa: E731
    made = th.compare({"top": make}, PROBLEM, grid={"k": [1, 2], "eta": [0.2]}, workers=2, steps=4)
    assert made.results[1].fun == th.run(make(2, 0.2), PROBLEM, workers=2, steps=4).fun
    assert made.records[0]["method"] == "top" and made.records[0]["k"] == 1
    made.save(tmp_path / "kept")
    assert th.load_result(tmp_path / "kept").records == made.records
    for grid, said in (({"stepp": [1]}, "grid: got 'stepp', allowed: fields"), ({"step": 0.1}, "grid: step: got 0.1")):
        with pytest.raises(ValueError, match=said):
            th.compare(th.ParallelSGD(), PROBLEM, grid=grid, workers=2, steps=4)


def test_a_sweep_that_was_ended_goes_on(tmp_path, monkeypatch):
    """Ended in its fourth run: the same call measures the five others, and a third call none."""
    count, run = [], th.run

    @functools.wraps(run)
    def counted(method, problem, **options):
        if options["steps"] == START["steps"]:  # the others are of one round, to compile
            count.append(options["seed"])
            if len(count) == 4:
                raise KeyboardInterrupt
        return run(method, problem, **options)

    monkeypatch.setattr("theory.cluster.run", counted)
    with pytest.raises(KeyboardInterrupt):
        sweep(out=tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    whole = sweep(out=tmp_path)
    assert len(count) == 4 + 5
    assert sweep(out=tmp_path).records == whole.records and len(count) == 9
    longer = sweep(out=tmp_path, steps=START["steps"] + 10)  # another run is not taken from there
    assert len(list(tmp_path.iterdir())) == 16 and longer.rows[0]["steps"] == START["steps"] + 10


def test_an_edited_server_rule_is_measured_again(tmp_path):
    def made(factor):  # as if the class had been changed between two starts of a script
        @setting
        class Own(NamedTuple):
            def update(self, run, received):
                run.add(run.x, received, scale=-factor * run.eta_received)

        Own.__qualname__ = "Own"
        return th.ParallelSGD(server=Own())

    known = {"grid": {"step": [0.01]}, "workers": 2, "steps": 4, "x0": np.full(6, 2.0), "out": tmp_path}
    first, again, edited = (th.compare(made(factor), PROBLEM, **known) for factor in (1.0, 1.0, 0.5))
    assert first.records == again.records and len(list(tmp_path.iterdir())) == 2
    assert edited.records[-1]["fun"] > first.records[-1]["fun"]


def test_a_function_is_called_by_its_name():
    def halved(v):
        return v / 2

    methods = [th.ParallelSGD(th.compressor(halved)), th.ParallelSGD(), th.ParallelSGD(th.Natural())]
    found = th.compare(methods, PROBLEM, workers=2, steps=4, step=0.01)
    assert found.labels == ("compressor(halved)", "full precision", "Natural")


def test_processes_give_the_bits_of_one(tmp_path):
    one, two = sweep(), sweep(jobs=2, out=tmp_path)
    assert [r["fun"] for r in one.records] == [r["fun"] for r in two.records]


# --- a baseline, and figures ------------------------------------------------------------------------------------------


def test_as_good_as_is_against_the_baseline():
    """Of exact runs: 0.5 % above the baseline is as good with a tolerance of 1 %, and not with one of 0.1 %."""
    problem = th.quadratic(np.ones(2), covariance=0.0)
    methods = {"base": th.ParallelSGD(step=0.1), "lower": th.ParallelSGD(step=0.2), "near": th.ParallelSGD(step=0.0995)}
    given = dict(x0=np.ones(2), workers=1, steps=5, baseline="base")
    gaps = np.array([(1 - m.step) ** 10 for m in methods.values()])
    assert 1.001 < gaps[2] / gaps[0] < 1.01
    for tolerance, good in ((0.01, [False, True, True]), (0.001, [False, True, False])):
        found = th.compare(methods, problem, tolerance=tolerance, **given)
        assert [row["within_noise"] for row in found.rows] == good and "as good as base" in found.table
    with pytest.raises(ValueError, match="baseline: got 'SGD', allowed: one of the labels, base, lower, near"):
        th.compare(methods, problem, **given | {"baseline": "SGD"})


def test_the_best_step_needs_none_before():
    """Nor does the run with it warn that it is too long: it was measured."""
    problem = th.quadratic([1.0, 4.0], covariance=0.0, optimum=1.0)
    found = th.compare(th.ParallelSGD(), problem, workers=1, steps=30, step="best")
    assert found.results[0].success
    with pytest.raises(TypeError, match=r"step: got None, allowed: a step size: ParallelSGD\(step=0.1\)"):
        th.run(th.ParallelSGD(), problem, workers=1, steps=3)


def test_a_figure_for_a_paper(compared):
    figure = compared.plot("rounds", size=(3.4, 2.5), title=None, note=False, labels={"dense": "SGD"})
    assert figure.get_size_inches().tolist() == [3.4, 2.5]
    assert not any(text.get_text() for text in figure.texts) and figure._suptitle is None
    assert [text.get_text() for text in figure.legends[0].get_texts()][:3] == ["SGD", "again", "slow"]
    from theory.plots import new_figure

    mine, panels = new_figure(1, 2)
    assert compared.plot("bits", ax=panels[0, 1]) is mine and len(panels[0, 1].lines) >= 3 and not panels[0, 0].lines
    with pytest.raises(ValueError, match="x: got .*, allowed: one axis with ax"):
        compared.plot(["bits", "seconds"], ax=panels[0, 0])
    with pytest.raises(ValueError, match="labels: got .*, allowed: a dict with some of dense"):
        compared.plot(labels={"sparse": "x"})


def test_no_two_curves_of_twelve_look_alike():
    steps = np.linspace(0.01, 0.12, 13)
    many = {f"{step:.4f}": th.ParallelSGD(step=step) for step in steps}
    twelve = th.compare(dict(list(many.items())[:12]), PROBLEM, **START).plot("rounds")
    looks = [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in twelve.axes[0].lines[:12]]
    assert len(set(looks)) == 12 and len({marker for *_, marker in looks}) == 12
    with pytest.warns(UserWarning, match="13 curves have 12 line styles"):
        th.compare(many, PROBLEM, **START).plot("rounds")


def test_runs_of_several_seeds_behave_as_numbers():
    """The lines of the README, with seeds: arithmetic on the mean, and a history with an axis for them."""
    result = th.run(METHODS["dense"], PROBLEM, seed=range(3), **START)
    ends = np.array([one.fun for one in result])
    shifted = 2.0 * (result.fun - 0.25)
    assert shifted.mean == pytest.approx(2.0 * (ends.mean() - 0.25)) and shifted.half == 2.0 * result.fun.half
    assert float(result.fun) == result.fun.mean and " ± " in f"{result.fun:.3g}"
    assert result.history["f"][-1].tolist() == ends.tolist() and result.history["bits_up"].shape[1] == 3
    assert result.to_pandas().groupby("seed").f.last().tolist() == ends.tolist()
    with pytest.raises(AttributeError, match=r"runs\[0\].x is that of the seed 0"):
        print(result.x)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_a_table_fits_the_terminal(compared, width, monkeypatch):
    monkeypatch.setattr("theory.plots.appearance.line_width", lambda: width)
    lines = compared.table.splitlines()[1:]
    table = lines[: max(k for k, line in enumerate(lines) if set(line) == {"-"}) + 1]
    assert max(map(len, table)) <= width
    shown = " ".join(table)
    assert all(text in shown for text in ("f - f*", "samples", "rounds", "total"))
    assert sum(line.startswith("slow") for line in table) == sum(set(line) == {"-"} for line in table) / 2


def far_from_zero():
    """x = 0 is a saddle of f = (x^2 - 1)^2/4 summed, and the search for f* does not leave it."""
    return th.function(lambda x: 0.25 * float(np.sum((x * x - 1) ** 2)), lambda x: x * (x * x - 1), d=3)


def test_the_note_says_what_is_taken_for_an_unknown_optimum():
    known = {"workers": 2, "steps": 50, "x0": np.full(3, 0.5), "step": 0.1}
    found = th.compare([th.ParallelSGD(), th.ParallelSGD(th.TopK(2))], far_from_zero(), **known)
    assert re.search(r"f\*: the least f in these runs, .*`solve` found 0\.75, no lower", str(found))
    assert "as the gradient there is 0" in th.solve(far_from_zero()).message


def test_the_best_step_without_a_known_smoothness_is_refused_with_what_to_give():
    with pytest.raises(ValueError, match=r"step: got 'best'.*function\(..., lipschitz=...\), where a rough value"):
        th.compare([th.ParallelSGD()], far_from_zero(), workers=2, steps=5, step="best")


def test_a_figure_without_room_for_its_legend_is_refused():
    many = th.compare(
        {f"a method with a long name, number {k}": th.ParallelSGD(step=0.1) for k in range(12)}, PROBLEM, **START
    )
    with pytest.raises(ValueError, match=r"size: got .*a height of at least \d.* for the legend of 1[23] curves"):
        many.plot("bits", size=(3.4, 2.6), title=None, note=False)
    many.plot("bits", size=(3.4, 6.0), title=None, note=False).canvas.draw()


def _sweep_side_by_side():
    th.compare(th.ParallelSGD(), PROBLEM, grid={"step": [0.1, 0.2]}, seed=range(2), workers=2, steps=5, jobs=2)


def test_a_process_that_compares_side_by_side_can_end():
    """Idle processes of joblib live on for five minutes, and a child of multiprocessing waits for its own."""
    child = multiprocessing.get_context("forkserver").Process(target=_sweep_side_by_side)
    child.start()
    child.join(100.0)
    ended = child.exitcode
    child.kill()
    assert ended == 0
