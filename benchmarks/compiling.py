"""What a first run compiles, and how long: every measurement in processes of its own, with a cache of their own.

Seconds are the processor's, of a process and all that it started, so that a busy machine matters less; those of the
audit are by the clock, since it is how many cores share the work that counts there.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from .pairing import Row
from .waits import ROOT, child, command

FEW = ("TopK", "QSGD", "CountSketch")  # with --quick

COMMON = """
import json, sys, time
import numpy as np
import theory as th
problem = th.quadratic(np.linspace(0.5, 1.5, 64), covariance=0.5)
other = th.logistic((np.random.default_rng(0).standard_normal((40, 64)), np.resize([-1.0, 1.0], 40)), l2=0.1)
v, memory = np.linspace(-1.0, 1.0, 64), th.ErrorFeedback()
def run(c, rule=memory, problem=problem):
    method = th.ParallelSGD(c, step=th.Constant(0.01), feedback=rule)
    return th.run(method, problem, workers=2, steps=3)
def clocked(call):
    begin = time.process_time()
    call()
    return time.process_time() - begin
def both_ways(c):
    return th.decode(th.encode(c, v, th.key(0)))
def session():
    run(th.Identity(), th.NoFeedback())
    run(th.TopK(6))
    both_ways(th.TopK(6))
"""
FILL = COMMON + "session(); print(json.dumps(0))"
ONE = (
    COMMON
    + """
session()
c = next(c for c in th.compressor_examples(64) if type(c).__name__ == sys.argv[1])
print(json.dumps([clocked(lambda: run(c)), clocked(lambda: both_ways(c))]))
"""
)
PAIR = (
    COMMON
    + """
from theory.core import stored_code as dispatch
look, missed = dispatch.Stored.load_overload, []
def counted(cache, signature, context):
    found = look(cache, signature, context)
    if found is None:
        missed.append(signature)
    return found
run(th.QSGD(7), problem=problem)
run(th.TopK(6), problem=other)
known = th.PartialErrorFeedback(0.3)
run(th.TopK(6), known)
dispatch.Stored.load_overload = counted
for pair in (lambda: run(th.QSGD(7), problem=other), lambda: run(th.QSGD(7), known)):
    pair()
print(json.dumps(len(missed)))
"""
)
ALL = (
    COMMON
    + """
from theory.compressors import registered
from theory.experiment.compile_ahead import do
names = [cls.__name__ for cls in registered()]
print(json.dumps(clocked(lambda: [do(name) for name in names])))
"""
)
OWN = (
    COMMON
    + """
session()
text = open("docs/examples/uniform_levels.py", encoding="utf-8").read()
def cell():
    exec(compile(text, "cell", "exec"), globals())
    run(UniformLevels(15))
print(json.dumps(clocked(cell)))
"""
)


def cached(program: str, cache: Path, *arguments: str):
    """What a program in a process of its own prints, as JSON, with a cache of its own."""
    return child(program, *arguments, THEORY_CACHE=str(cache))


def in_empty(program: str, *arguments: str):
    """The same with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        return cached(program, Path(folder), *arguments)


def classes(quick: bool) -> list[str]:
    """The compressors that are measured, one example of each."""
    from theory.compressors import registered

    return [cls.__name__ for cls in registered() if not quick or cls.__name__ in FEW]


def _row(what: str, values, most: float | None = None, before: str = "", unit: str = " s") -> Row:
    return Row(what, "", np.atleast_1d(values).astype(float), most if most is None else ("at most", most), before, unit)


def one_more(quick: bool):
    """Processor seconds of one more compressor, when something else has been run before."""
    alone, both = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        filled, copy = Path(folder) / "filled", Path(folder) / "copy"
        cached(FILL, filled)
        for name in classes(quick):
            if name == "TopK":
                continue  # is what was run before
            shutil.copytree(filled, copy)
            run, message = cached(ONE, copy, name)
            shutil.rmtree(copy)
            alone[name], both[name] = run, run + message
            print(f"    {name}: {run:.1f} s, encode and decode {message:.1f} s", file=sys.stderr, flush=True)
        shutil.copytree(filled, copy)
        own = cached(OWN, copy)
    yield _row("one more compressor, in the simulator", [*alone.values()], 3.0)
    yield _row("the same with encode and decode", [*both.values()], 5.0)
    for name, what in (("QSGD", "QSGD"), ("CountSketch", "the count sketch")):
        yield _row(f"{what}, with encode and decode", both[name], 8.0)
    yield _row("a compressor of one's own, in a notebook: its first result", own, 4.0)


def lectures():
    """Processor seconds of each lecture with an empty cache."""
    sys.path.insert(0, str(ROOT / "notebooks"))
    import sheets
    import times

    spent = {}
    for path in sheets.lectures():
        with tempfile.TemporaryDirectory() as folder:
            spent[path.stem] = times.run(path, Path(folder)).cpu
        print(f"    {path.stem}: {spent[path.stem]:.0f} s", file=sys.stderr, flush=True)
    slowest = max(spent, key=spent.__getitem__)
    yield _row(f"the slowest lecture, from an empty cache ({slowest[:2]})", spent[slowest], 60.0, "164 s")
    yield _row("all lectures, each from an empty cache", sum(spent.values()) / 60.0, 6.0, "13.3 min", " min")


def compiling(quick: bool, with_lectures: bool):
    """All rows."""
    yield _row("kernels compiled for two new pairs of known pieces", in_empty(PAIR), 0.0, "7 to 14 s a pair", "")
    yield from one_more(quick)
    if not quick:
        yield _row("all registered compressors: simulator, encode and decode", in_empty(ALL))
        for flags in ([], ["--quick"]):
            with tempfile.TemporaryDirectory() as folder:
                wall, spent = command("theory.experiment", "audit", *flags, THEORY_CACHE=folder)
            what = f"the audit of all compressors{', --quick' if flags else ''}, {os.cpu_count()} cores, by the clock"
            yield _row(what, wall, None if flags else 150.0, "" if flags else "more than 400 s")
            yield _row("the same, of the processor", spent)
    if with_lectures:
        yield from lectures()
