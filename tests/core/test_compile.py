"""What is compiled, counted: a kernel belongs to a problem, or to a compressor, and never to a pair of them."""

from __future__ import annotations

import json
import sys

import pytest
from conftest import run_group

TOOLS = """
import json
import numpy as np
import scipy.sparse as sp
from numba.core import event
import theory as th

compiled = []


class Listener(event.Listener):
    def on_start(self, what):  # what is found on disk is not compiled
        compiled.append(what.data["dispatcher"].py_func.__qualname__)

    def on_end(self, what):
        pass


event.register("numba:compile", Listener())
rng = np.random.default_rng(0)
X, y = rng.standard_normal((24, 12)), np.where(np.arange(24) % 3 == 0, -1.0, 1.0)
S = sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))


def count(work, *arguments, **options):
    "The names of what is compiled meanwhile."
    compiled.clear()
    work(*arguments, **options)
    return list(compiled)


def run(problem, compressor, feedback=th.NoFeedback(), **options):
    method = th.ParallelSGD(compressor, step=th.Constant(0.05), feedback=feedback)
    th.run(method, problem, workers=2, steps=3, **options)


def code(compressor, v):
    th.decode(th.encode(compressor, v, 1))


def pairs(X, one, two, feedback=th.NoFeedback()):
    "Two problems and two compressors: three pairs, and then the fourth."
    A, B = th.logistic((X, y), l2=0.1), th.ridge((X, y), l2=0.1)
    return [count(run, *pair, feedback) for pair in ((A, one), (B, one), (A, two), (B, two))]
"""
DENSE = """
print(json.dumps([pairs(X, th.Sign(), th.TopK(3)), pairs(X, th.Sign(), th.TopK(3), th.ErrorFeedback())]))
"""
GRAPHS = """
def run(problem, compressor, feedback=None, graph=th.Ring(), **options):
    methods = th.DCDPSGD(compressor, th.Constant(0.05), graph), th.ChocoSGD(compressor, th.Constant(0.05), graph, 0.3)
    for method in (*methods, th.GradientTracking(compressor, th.Constant(0.05), graph)):
        th.run(method, problem, workers=4, steps=3, **options)


found = pairs(X, th.QSGD(3), th.TopK(3))
print(json.dumps([found, count(run, th.ridge((X, y), l2=0.1), th.TopK(2), graph=th.Star())]))
"""
SPARSE = """
print(json.dumps([pairs(S, th.TopK(3), th.RandK(3), rule) for rule in (th.NoFeedback(), th.ErrorFeedback())]))
"""
CODES = """
v = rng.standard_normal(12)
first = count(code, th.TopK(2), v)
others = count(code, th.TopK(5), rng.standard_normal(300)), count(run, th.logistic((X, y), l2=0.1), th.TopK(4))
print(json.dumps([first, *others, count(code, th.TopK(2), v), count(code, th.Sign(), v), count(code, th.TopK(3), v)]))
"""
WAITING = """
from theory.core import when_compiling
from theory.core.random import normal
from theory.core.random import bits

said, before = [], []
when_compiling(lambda what, folder, stored: (said.append(str(folder)), before.append(len(compiled))))
bits(np.uint64(0), 0)
normal(np.uint64(0), 0)
when_compiling(lambda what, folder, stored: said.append("nobody listens any more"))
when_compiling(None)
th.compress(th.Sign(), np.ones(3), 0)
print(json.dumps([said, before, compiled]))
"""
CALLEE = """
from numba import njit
from theory.wire.bits import bits_for

caller = njit(lambda n: bits_for(5) + bits_for(True) + bits_for(n))
called = count(caller, 3)
python = count(bits_for, 3)
print(json.dumps([called, python, caller(8), bits_for(8)]))
"""


def answer(program: str):
    """What a program prints in JSON, in a process of its own."""
    done = run_group([sys.executable, "-c", TOOLS + program], timeout=400)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_pairs_add_up(pairs) -> None:
    """The fourth pair compiles nothing, and of two problems or compressors each what is its own."""
    first, problem, compressor, fourth = map(set, pairs)
    assert fourth == set()
    coding = {"Quantize._row", "QuantizeRest._row", "Measure._row", "Accumulate._row"}
    if first:  # without a memory, after which some is there already
        assert "Gradient._row" in first & problem and coding & first
    assert not coding & problem  # by the problem, its gradient is compiled
    assert coding & compressor and not {"Gradient._row", "Draw._row"} & compressor


@pytest.mark.parametrize("program", [DENSE, pytest.param(SPARSE, marks=pytest.mark.full)], ids=["dense", "sparse"])
def test_the_fourth_pair_compiles_nothing(fresh_cache, program):
    """After (A, 1), (B, 1) and (A, 2) the pair (B, 2) is there, also with a memory; the next process finds it all."""
    plain, memory = answer(program)
    assert_pairs_add_up(plain)
    assert memory[3] == [] and not {"Draw._row", "Keys._row"} & {name for pair in memory for name in pair}
    assert answer(program) == [[[]] * 4] * 2


def test_on_a_graph_the_fourth_pair_compiles_nothing_and_no_graph_does(fresh_cache):
    """Nor does another graph."""
    found, another = answer(GRAPHS)
    assert_pairs_add_up(found)
    assert another == []


def test_messages_compile_once_for_a_compressor(fresh_cache):
    """Encode and decode: other numbers of a compressor, other lengths and a run in between compile nothing anew."""
    first, other_numbers, a_run, again, other_compressor, once_more = answer(CODES)
    assert first and a_run and other_compressor
    assert other_numbers == again == once_more == []


def test_who_waits_is_told_once(fresh_cache):
    """Before the first kernel is compiled, and not again; nor is anybody who no longer wants to know."""
    said, before, compiled = answer(WAITING)
    assert said == [str(fresh_cache)] and before == [0]
    assert {"bits", "normal"} <= set(compiled) and len(compiled) > 2


def test_what_kernels_call_is_compiled_once_for_all_numbers(fresh_cache):
    """Not again for each number that a caller writes as a literal; for Python, when Python calls it."""
    called, python, sum_of_three, three = answer(CALLEE)
    assert called.count("bits_for") == 2  # of an integer, and of a boolean
    assert python == ["bits_for"]
    assert (sum_of_three, three) == (6, 3)
    assert answer(CALLEE)[1] == []
