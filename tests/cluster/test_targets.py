"""Where a run stops early, the step from theory, several seeds, and what a keyword is called."""

from __future__ import annotations

import importlib
import math
import sys
import warnings

import numpy as np
import pytest
from conftest import run_group, run_mpi

import theory as th
from theory.methods.schedules import Constant, InverseTime
from theory.methods.theory_steps import exact_gradients

PROBLEM = th.quadratic([1.0, 4.0], covariance=0.0)
DESCENT = th.ParallelSGD(step=0.2)
RUN = dict(workers=1, x0=np.array([1.0, 1.0]), record_every=1)
# x_t = (0.8^t, 0.2^t), so f(x_t) = (0.64^t + 4 * 0.04^t)/2, and the gradient is (0.8^t, 4 * 0.2^t)


def gap(t):
    return (0.64**t + 4.0 * 0.04**t) / 2.0


def first(reaches):
    return next(t for t in range(1000) if reaches(t))


def test_a_gap_ends_a_run_at_the_first_row_that_reaches_it():
    result = th.run(DESCENT, PROBLEM, steps=500, target=1e-3, **RUN)
    assert result.nit == first(lambda t: gap(t) <= 1e-3)
    assert (result.status, result.success) == (0, True) and "f - f* = " in result.message
    assert result.history.size == result.nit + 1


def test_tol_is_a_norm_of_the_gradient():
    result = th.run(DESCENT, PROBLEM, steps=500, tol=0.01, **RUN)
    assert result.nit == first(lambda t: math.hypot(0.8**t, 4.0 * 0.2**t) <= 0.01)
    same = th.run(DESCENT, PROBLEM, steps=500, target={"gradient_norm": 0.01}, **RUN)
    assert (same.nit, same.message) == (result.nit, result.message)


@pytest.mark.parametrize(("name", "most"), [("bits", 640), ("rounds", 7), ("samples", 9)])
def test_a_budget_ends_a_run_when_it_is_spent(name, most):
    result = th.run(DESCENT, PROBLEM, steps=500, target={name: most}, **RUN)
    column = result.history[{"bits": "payload_bits_up"}.get(name, name)]
    assert column[-1] >= most > column[-2]
    assert (result.status, result.success) == (0, True) and name in result.message


def test_seconds_end_a_run():
    result = th.run(DESCENT, PROBLEM, steps=500, target={"seconds": 1e-9}, **RUN)
    assert result.nit == 1 and result.history["seconds"][-1] > 0


def test_what_is_not_reached_is_no_success():
    result = th.run(DESCENT, PROBLEM, steps=3, target={"gap": 1e-9, "gradient_norm": 1e-9}, **RUN)
    assert (result.status, result.success, result.nit) == (3, False, 3)
    assert "f - f*" in result.message and "||grad f||" in result.message
    spent = th.run(DESCENT, PROBLEM, steps=500, target={"gap": 1e-9, "rounds": 5}, **RUN)
    assert (spent.status, spent.nit) == (3, 5)


def test_a_stopped_run_has_the_bits_of_a_shorter_one():
    noisy = th.quadratic(np.ones(8), covariance=1.0)
    method = th.ParallelSGD(th.TopK(2), step=0.1, feedback=th.ErrorFeedback())
    stopped = th.run(method, noisy, workers=4, steps=300, record_every=1, x0=np.full(8, 3.0), target=1.0)
    assert 0 < stopped.nit < 300
    whole = th.run(method, noisy, workers=4, steps=stopped.nit, record_every=1, x0=np.full(8, 3.0))
    assert np.array_equal(stopped.x, whole.x) and np.array_equal(stopped.memory, whole.memory)
    further = th.run(method, noisy, workers=4, steps=300, record_every=1, x0=np.full(8, 3.0), resume=stopped)
    straight = th.run(method, noisy, workers=4, steps=300, record_every=1, x0=np.full(8, 3.0))
    assert np.array_equal(further.x, straight.x)


def test_a_number_is_a_constant_step():
    one = th.run(th.ParallelSGD(step=Constant(0.2)), PROBLEM, steps=5, **RUN)
    for other in (
        th.run(DESCENT, PROBLEM, steps=5, **RUN),
        th.run(th.ParallelSGD(step=0.7), PROBLEM, steps=5, step=0.2, **RUN),
    ):
        assert np.array_equal(other.x, one.x)


def test_epochs_are_passes_of_all_workers_over_the_rows():
    problem = th.logistic(th.load_data("breast_cancer").scaled(), l2=0.1)
    result = th.run(th.ParallelSGD(step=0.1, batch=3), problem, workers=4, epochs=2)
    assert 2 * 569 - 12 < result.history["samples"][-1] <= 2 * 569


def test_verbose_prints_a_line_for_each_row(capsys):
    result = th.run(DESCENT, PROBLEM, steps=4, verbose=True, **RUN)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == result.history.size + 1 and lines[-1] == result.message
    assert lines[2].startswith("step 2 of 4: f = ") and f"f = {gap(2):.6g}" in lines[2]


def test_several_seeds_are_the_runs_of_each_and_their_mean():
    noisy = th.quadratic(np.ones(3), covariance=1.0)
    both = th.run(DESCENT, noisy, workers=2, steps=20, seed=[4, 7])
    alone = [th.run(DESCENT, noisy, workers=2, steps=20, seed=seed) for seed in (4, 7)]
    assert [run.fun for run in both] == [run.fun for run in alone] and both.seeds == (4, 7)
    a, b = (run.fun for run in alone)
    assert both.fun.mean == pytest.approx((a + b) / 2)
    assert both.fun.half == pytest.approx(12.706204736 * abs(a - b) / 2, rel=1e-6)  # Student's t, one degree of freedom
    assert "mean of 2 seeds" in repr(both)


def test_several_seeds_are_read_as_they_were_saved(tmp_path):
    runs = th.run(DESCENT, PROBLEM, steps=5, seed=[0, 1], **RUN)
    runs.save(tmp_path / "runs")
    again = th.load_result(tmp_path / "runs")
    assert again.seeds == (0, 1) and type(again) is type(runs)
    for one, other in zip(runs, again, strict=True):
        assert np.array_equal(one.x, other.x) and np.array_equal(one.history, other.history)
    further = th.run(DESCENT, PROBLEM, steps=9, resume=again[1], **{**RUN, "seed": 1})
    assert np.array_equal(further.x, th.run(DESCENT, PROBLEM, steps=9, seed=1, **RUN).x)


JOB = """
import sys
import numpy as np
import theory as th
comm = None
if len(sys.argv) > 1:
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
problem = th.quadratic(np.ones(8), covariance=1.0)
method = th.ParallelSGD(th.TopK(2), step=0.1, feedback=th.ErrorFeedback())
for target in (1.0, {"bits": 5_000}, {"gap": 1e-9, "rounds": 30}):
    how = dict(workers=4, steps=300, record_every=7, x0=np.full(8, 3.0), target=target, comm=comm)
    for result in th.run(method, problem, seed=[0, 5], **how):
        if comm is None or comm.Get_rank() == comm.Get_size() - 1:  # not only the rank that decides
            print(result.nit, result.status, result.message, result.x.tobytes().hex(), flush=True)
"""


@pytest.mark.slow
def test_a_run_on_ranks_stops_where_the_simulator_stops(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(JOB, encoding="utf-8")
    ranks = run_mpi(2, script, "ranks", timeout=300)
    alone = run_group([sys.executable, script], timeout=300)
    assert ranks.returncode == alone.returncode == 0, ranks.stderr + alone.stderr
    assert ranks.stdout.splitlines() == alone.stdout.splitlines() and len(alone.stdout.splitlines()) == 6
    assert [line.split()[1] for line in alone.stdout.splitlines()] == ["0", "0", "0", "0", "3", "3"]


# --- steps from theory ------------------------------------------------------------------------------------------------

NOISY = th.quadratic([1.0, 4.0], covariance=1.0)


EF, S = th.ErrorFeedback(), 0.5**0.5  # of one entry of two: sqrt(1 - 1/2)
SGD, TOP, RAND = th.ParallelSGD(step="theory"), th.TopK(1), th.RandK(1, unbiased=True)
LOCAL = th.LocalSGD(local_steps=2, average="quadratic", step="theory")


@pytest.mark.parametrize(
    ("method", "problem", "workers", "step", "formula"),
    [
        (SGD, NOISY, 3, Constant(0.25), "bottou_constant_step"),
        (SGD._replace(average="uniform"), NOISY, 3, Constant(0.25), "quantized_sgd_smooth"),
        (SGD._replace(compressor=RAND), NOISY, 2, Constant(1.0 / 6.0), "bottou_constant_step"),  # omega = 1, N = 2
        (
            SGD._replace(compressor=TOP, feedback=EF),
            PROBLEM,
            1,
            Constant(0.4 * (1 - S) / (1 + S)),
            "exact_feedback_step",
        ),
        (SGD._replace(compressor=TOP), PROBLEM, 1, Constant(2 / (1 - S + 4 * (1 + S))), "compressed_descent_step"),
        (th.mem_sgd(NOISY, TOP), NOISY, 4, th.mem_sgd(NOISY, TOP).step, "mem_sgd"),
        (LOCAL, NOISY, 4, InverseTime(4.0, 1.0, 64.0), "local_sgd"),
        (SGD._replace(batch=th.GrowingBatch(1.5)), NOISY, 4, Constant(0.25), "cr_psgd_rate"),
    ],
)
def test_the_step_of_the_theorem_that_covers_a_method(method, problem, workers, step, formula):
    found = th.theory_step(method._replace(step="theory"), problem, workers)
    assert found.formula == formula and hasattr(th.bounds, formula) and f"bounds.{formula}" in str(found)
    assert type(found.step) is type(step) and np.allclose(found.step, step)
    budget = dict(samples=60) if formula == "cr_psgd_rate" else dict(steps=8)
    result = th.run(method, problem, workers=workers, step="theory", **budget)
    own = th.run(method._replace(step=found.step), problem, workers=workers, **budget)
    assert np.array_equal(result.x, own.x) and result.theory == str(found) and "theory" not in own


def test_a_step_of_theory_is_not_called_too_long():
    """Mem-SGD's begins far above 2/S, and its theorem covers that; the same step without a theorem is warned of."""
    method = th.ParallelSGD(th.TopK(1), "theory", th.ErrorFeedback(), average="quadratic")
    problem = th.ridge((np.eye(2) * [[20.0], [0.1]], np.ones(2)), l2=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", th.LongStepWarning)
        th.run(method, problem, workers=1, steps=1)
    step = th.theory_step(method, problem, 1).step
    with pytest.warns(th.LongStepWarning):
        th.run(method._replace(step=step), problem, workers=1, steps=1)


def test_exact_gradients_are_told_from_drawn_ones():
    assert exact_gradients(PROBLEM) and not exact_gradients(NOISY)
    rows = th.logistic((np.eye(2), [1, -1]), l2=0.1)
    assert not exact_gradients(rows)


def test_the_step_of_the_theorem_descends_as_it_says():
    """f - f* of exact gradients without compression falls by 1 - mu/L at least in each step."""
    result = th.run(th.ParallelSGD(step="theory"), PROBLEM, steps=30, step="theory", **RUN)
    gaps = result.history["f"]
    assert np.all(gaps[1:] <= (1.0 - 0.25) * gaps[:-1])


def test_a_gap_to_an_unknown_optimum_that_is_too_high_is_no_success():
    """From 0, a saddle, the search for f* finds 0.75; the run starts below that."""
    problem = th.function(lambda x: 0.25 * float(np.sum((x * x - 1) ** 2)), lambda x: x * (x * x - 1), d=3)
    result = th.run(th.ParallelSGD(step=0.1), problem, workers=1, steps=20, x0=np.full(3, 0.5), target=1e-3)
    assert not result.success and "f* is not known" in result.message
    reached = th.run(th.ParallelSGD(step=0.1), problem, workers=1, steps=99, x0=np.full(3, 0.5), target={"f": 1e-3})
    assert reached.success and reached.fun <= 1e-3


def test_f_at_the_start_is_computed_once_of_data_that_cannot_change(monkeypatch):
    module, spent = importlib.import_module("theory.cluster.run"), []
    evaluate = module._evaluate
    monkeypatch.setattr(module, "_evaluate", lambda *given: spent.append(0) or evaluate(*given))
    X, y = np.random.default_rng(0).standard_normal((40, 5)), np.resize([1.0, -1.0], 40)

    def at_start(problem):
        run = th.run(th.ParallelSGD(step=0.01), problem, workers=1, steps=2, record_every=2, x0=np.ones(5))
        return run.history["f"][0]

    problem = th.logistic((X, y), l2=0.1)  # shows an array that its owner may change
    before, largest = at_start(problem), th.max_lipschitz(problem)
    X *= 2.0
    assert at_start(problem) != before and th.max_lipschitz(problem) > largest and len(spent) == 4
    X.flags.writeable = y.flags.writeable = False
    known = th.logistic((X, y), l2=0.1)
    known.b.base.flags.writeable = False
    assert at_start(known) == at_start(known) == at_start(problem) and len(spent) == 4 + 3 + 2
