"""Comparisons over several seeds: means with intervals, what is within noise, and what is saved."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest
from scipy.stats import t as student

import theory as th

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


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_a_table_fits_the_terminal(compared, width, monkeypatch):
    monkeypatch.setattr("theory.plots.text.line_width", lambda: width)
    lines = compared.table.splitlines()[1:]
    table = lines[: max(k for k, line in enumerate(lines) if set(line) == {"-"}) + 1]
    assert max(map(len, table)) <= width
    shown = " ".join(table)
    assert all(text in shown for text in ("f - f*", "samples", "rounds", "total"))
    assert sum(line.startswith("slow") for line in table) == sum(set(line) == {"-"} for line in table) / 2
