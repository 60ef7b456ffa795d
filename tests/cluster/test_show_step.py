"""`show` prints the step that runs: its lines, what they lead to, and the loop that takes its place."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import run_mpi

import theory as th

STEP = th.Constant(0.1)
DATA = th.load_data("digits")
PROBLEM = th.logistic((DATA.X[:100] / 16.0, DATA.y[:100]), l2=0.01)
SPARSE = th.logistic(th.load_data("rcv1-like"), l2=1e-3)


def shown(capsys, *arguments, **options) -> list[str]:
    th.show(*arguments, **options)
    return capsys.readouterr().out.splitlines()


def operations(lines: list[str]) -> list[str]:
    return [name for line in lines if " -> " in line for name in line.rpartition(" -> ")[2].split(", ")]


def test_a_text_that_asks_for_the_round_is_shown(capsys):
    @th.method
    class Own(NamedTuple):
        step: NamedTuple
        compressor: NamedTuple = th.Identity()

        def round(self, run):
            run.x -= run.eta * run.x / (1.0 + run.rates.now())
            run.scale(run.x, 1.0 - run.eta / 2.0)

    th.show(Own(th.InverseTime(1.0, 1.0, 2.0)), th.quadratic(np.ones(3), covariance=0.0))
    assert "run.scale(run.x, 1.0 - run.eta / 2.0)" in capsys.readouterr().out


def test_the_operations_are_those_that_run(capsys):
    """In the order in which the run makes them; every line of the text is there."""
    from theory.cluster.calls import list_calls
    from theory.cluster.driver import make_run
    from theory.cluster.setup import prepare
    from theory.cluster.simulator import Memory

    method = th.ParallelSGD(th.TopK(3), STEP, th.ContractiveErrorFeedback(th.Natural()), momentum=0.9)
    lines = shown(capsys, method, PROBLEM)
    run = make_run(prepare(method, PROBLEM, workers=2, steps=1), Memory())
    assert operations(lines) == [call.name for call in list_calls(run, run.setup.method.round)]
    assert lines[1].startswith("def round(self, run):")
    assert sum(not line.lstrip().startswith(("|", "#")) for line in lines) == 9
    assert any("run.set(e, p)" in line for line in lines)


def test_a_message_and_what_it_leaves_are_made_in_one_pass(capsys):
    """If nothing is done in between; line by line they take two passes, with the same bits."""

    @th.method
    class Descent(NamedTuple):
        step: NamedTuple
        between: bool
        compressor: NamedTuple = th.QSGD(4)
        listed = True

        def round(self, run):
            e = run.memory()
            run.add_gradient(e, at=run.x, scale=run.eta)
            message = run.compress(self.compressor, e)
            if self.between:
                run.add(run.x, run.gather(message), scale=-1.0)
            run.add(e, message, scale=-1.0)
            if not self.between:
                run.add(run.x, run.gather(message), scale=-1.0)

    one, two = Descent(STEP, False), Descent(STEP, True)
    assert operations(shown(capsys, one, PROBLEM))[4:] == ["QuantizeRest", "Measure", "Accumulate"]
    assert operations(shown(capsys, two, PROBLEM))[4:] == ["Quantize", "Measure", "Accumulate", "Accumulate"]
    found = [th.run(m, PROBLEM, workers=3, steps=20, fast=fast) for m in (one, two) for fast in (True, False)]
    assert all(np.array_equal(found[0].x, r.x) and np.array_equal(found[0].memory, r.memory) for r in found[1:])


def bare(lines: list[str]) -> list[str]:
    """Without what stands on the right."""
    return [line.partition(" -> ")[0].rstrip() for line in lines]


def test_a_name_is_defined_above_the_line_that_uses_it(capsys):
    """Lines that call no operation are shown where they define something, or return it."""
    memory = bare(shown(capsys, th.ParallelSGD(th.TopK(3), STEP, th.ErrorFeedback()), PROBLEM))
    load = memory.index("    p = self.feedback.load(run)  # p = e")
    assert memory[load + 1 : load + 4] == [
        "        | ErrorFeedback.load: Start with p = e, in the same array.",
        "        | e = run.memory()",
        "        | return e  # p is e from here on",
    ]
    assert "        | return run.gather(message)" in memory
    lamb = bare(shown(capsys, th.ParallelSGD(step=STEP, server=th.LAMB()), PROBLEM))
    names = [line for line in lamb if "| g, u, m, v = " in line or "| # m' = m / (1 - beta1^t)" in line]
    assert len(names) == 2 and any("| return u" in line for line in lamb)


def test_the_round_says_what_the_factors_of_the_step_are(capsys):
    own = {"eta_sent = 1, eta_received = eta": {}, "eta_sent = eta, eta_received = 1": {"feedback": th.ErrorFeedback()}}
    own["eta_sent = 1, eta_received = eta, local_l2 = 0.01"] = {"compress": "loss"}
    for told, options in own.items():
        lines = shown(capsys, th.ParallelSGD(th.QSGD(3), th.InverseTime(1.0, 1.0, 9.0), **options), PROBLEM)
        assert lines[0].endswith(f"at once; here {told}:") and "eta_sent is eta" in "".join(lines[2:5])
    assert "; here" not in shown(capsys, th.DPSGD(step=STEP), PROBLEM)[0]


def test_the_rounds_after_the_first(capsys):
    """What a round does not reach is marked."""
    method = th.OneBitAdam(STEP, warmup=3)
    found = {t: shown(capsys, method, PROBLEM, t=t) for t in (2, 3)}
    for t, (name, other) in {2: ("g_mean", "delta_server"), 3: ("delta_server", "g_mean")}.items():
        left_out = [line for line in found[t] if line.endswith(f"(not in round {t})")]
        assert left_out and all(other in "".join(left_out) and name not in line for line in left_out)
    assert not any("not in round" in line for line in shown(capsys, th.LocalSGD(step=STEP, local_steps=2), PROBLEM))
    with pytest.raises(ValueError, match="^t: got -1"):
        th.show(method, PROBLEM, t=-1)


def test_a_trace_function_stays(capsys):
    """Such as that of a debugger."""
    before, mine = sys.gettrace(), lambda *_: None
    sys.settrace(mine)
    try:
        th.show(th.ParallelSGD(step=STEP), PROBLEM)
        assert sys.gettrace() is mine
    finally:
        sys.settrace(before)


def test_what_is_added_to_zeros_is_set(capsys):
    """One pass in the list and two in Python, with the same bits: -0.0 becomes 0.0 in both."""

    @th.method
    class Zeros(NamedTuple):
        step: NamedTuple
        between: bool
        compressor: NamedTuple = th.Identity()
        listed = True

        def round(self, run):
            p, q = run.rows("p"), run.rows("q")
            run.set(p, 0.0)
            if self.between:
                run.set(q, 0.0)
            run.add(p, run.x, scale=-1.0)
            run.add(run.x, run.gather(run.compress(self.compressor, p)))

    one, two = Zeros(STEP, False), Zeros(STEP, True)
    assert operations(shown(capsys, one, PROBLEM))[:2] == ["Combine", "Keys"]
    assert operations(shown(capsys, two, PROBLEM))[:4] == ["Combine", "Combine", "Combine", "Keys"]
    x0 = np.where(np.arange(PROBLEM.d) % 2, 1.0, 0.0)
    found = [th.run(m, PROBLEM, workers=2, steps=1, x0=x0, fast=fast) for m in (one, two) for fast in (True, False)]
    assert all(r.x.tobytes() == found[0].x.tobytes() and not r.x.any() for r in found)


def test_what_is_not_used_does_not_appear(capsys):
    plain = shown(capsys, th.ParallelSGD(th.TopK(3), STEP), PROBLEM)
    assert not any("project" in line or "run.scale" in line or "Average" in line for line in plain)
    assert "Project" in operations(shown(capsys, th.ParallelSGD(th.TopK(3), STEP, radius=1.0), PROBLEM))


def test_a_loop_that_takes_its_place_is_named_with_its_test(capsys):
    """And the test is one that there is."""
    noisy = th.quadratic(np.ones(3), covariance=1.0)
    for method, problem in ((th.ParallelSGD(step=STEP), SPARSE), (th.ParallelSGD(step=STEP), noisy)):
        last = shown(capsys, method, problem)[-1]
        assert last.startswith("In its place runs theory.methods.compiled_loops.")
        name = last.split()[4].rstrip(",")
        module, _, function = name.rpartition(".")
        assert callable(getattr(importlib.import_module(module), function))
        file, _, test = last.rpartition(": ")[2].rstrip(".").partition("::")
        assert f"def {test}(" in (Path(__file__).parents[2] / file).read_text(encoding="utf-8")
    assert "In its place" not in "".join(shown(capsys, th.ParallelSGD(th.TopK(2), STEP), SPARSE))
    assert "sparse rows" in shown(capsys, th.ParallelSGD(th.TopK(2), STEP), SPARSE)[0]


def test_a_method_that_was_typed_at_the_prompt(capsys):
    """Its lines cannot be read, but what they call is known."""
    space = {"th": th}
    exec(
        "from typing import NamedTuple\n@th.method\nclass Own(NamedTuple):\n    step: NamedTuple\n"
        "    compressor: NamedTuple = th.Identity()\n    def round(self, run):\n        p = run.scratch()\n"
        "        run.set(p, run.x, scale=0.0)\n        run.add_loss_gradient(p, at=run.x)\n",
        space,
    )
    assert operations(shown(capsys, space["Own"](STEP), PROBLEM)) == ["Combine", "Draw", "Gradient"]


def test_on_ranks_the_exchange_is_shown():
    lines = run_mpi(2, __file__).stdout.splitlines()
    assert lines[0].startswith("ParallelSGD, each line for all workers at once")
    assert operations(lines)[-7:] == ["Pack", "Seal", "Allgatherv", "Verify", "Unpack", "check", "Accumulate"]
    assert sum(line.startswith("def round") for line in lines) == 1  # rank 0 alone prints


def test_without_a_problem_the_source_of_a_function_is_shown(capsys):
    th.show(th.QSGD.quantize)
    assert capsys.readouterr().out.startswith("def quantize(c, state, v, stream, symbols):\n    symbols.value[0] = ")
    th.show(th.NoFeedback)
    assert "class NoFeedback(NamedTuple):" in capsys.readouterr().out
    with pytest.raises(TypeError, match="problem: got None, allowed: a problem"):
        th.show(th.ParallelSGD(step=th.Constant(0.1)))


if __name__ == "__main__":
    from mpi4py import MPI

    th.show(th.ParallelSGD(th.TopK(3), STEP, th.ErrorFeedback()), PROBLEM, comm=MPI.COMM_WORLD)
    sys.stdout.flush()
