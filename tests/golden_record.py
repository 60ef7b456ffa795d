"""The golden record: what `theory.run` returned before its middle was rebuilt, compared with what it returns now.

    python tests/golden_record.py write              # all runs, into golden_record.json
    python tests/golden_record.py compare [ID ...]   # what differs from it (none: all runs)

Only public names are used, so that the script does not depend on how a run is made.  For every run the record has
digests of the iterates, of the memories and of the columns of the history that count (steps, samples, rounds, bits and
bytes), five values, and the bytes of the memory.  Digests depend on the processor and on the versions of Python, NumPy
and Numba; where these differ from the record's, the five values are compared to a relative 1e-9.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numba
import numpy as np
from numba.core.codegen import get_host_cpu_features

import theory as th

RECORD = Path(__file__).with_suffix(".json")
WORKERS, RANK_WORKERS = 4, 10  # in the simulator; on ranks, where 2 and 5 divide it
COSTS = ("step", "samples", "rounds", "bits_up", "bits_down", "message_bytes_up", "message_bytes_down")
TOLERANCE = 1e-9

EF = th.ErrorFeedback()
STEP = th.Constant(0.05)
DECREASING = th.InverseTime(2.0, 0.1, 60.0)


# --- problems -------------------------------------------------------------------------------------------------------


@cache
def problem(name: str):
    """A problem by its name."""
    if name == "digits":
        data = th.load_data("digits")
        return th.logistic((data.X / 16.0, data.y), l2=0.01)
    if name == "digits, ridge":
        data = th.load_data("digits")
        return th.ridge((data.X[:400] / 16.0, data.y[:400]), l2=0.02)
    if name == "digits, softmax":
        data = th.load_data("digits-10")
        return th.softmax((data.X / 16.0, data.y), l2=0.01)
    if name == "rcv1-like":
        data = th.load_data("rcv1-like")
        return th.logistic((data.X[:2000], data.y[:2000]), l2=1e-3)
    if name == "rcv1-like, ridge":
        data = th.load_data("rcv1-like")
        return th.ridge((data.X[:2000], data.y[:2000]), l2=1e-3)
    if name == "rcv1-like, l2 = 0":
        data = th.load_data("rcv1-like")
        return th.logistic((data.X[:2000], data.y[:2000]), l2=0.0)
    if name == "rcv1-like, non-convex":
        data = th.load_data("rcv1-like")
        return th.nonconvex_logistic((data.X[:500], data.y[:500]), 0.01)
    if name == "quadratic":
        return th.quadratic(np.linspace(0.5, 1.5, 16), covariance=0.5, optimum=np.arange(16) / 16.0)
    if name == "quadratic, full covariance":
        root = np.random.default_rng(1).standard_normal((12, 12)) / 4.0
        return th.quadratic(np.linspace(0.5, 1.5, 12), covariance=root @ root.T)
    if name == "quadratic, d = 400":
        return th.quadratic(np.linspace(0.5, 1.5, 400), covariance=0.1)
    if name == "sine valley":
        return th.sine_quadratic(np.ones(6), 0.5, 1.0)
    if name == "Langevin":
        return th.diversified(problem("digits, ridge"), th.Langevin(0.1))
    if name == "DropConnect":
        return th.diversified(problem("digits, ridge"), th.DropConnect(0.8))
    raise KeyError(name)


# --- runs: id -> (method, problem, keywords of run) -----------------------------------------------------------------


def sgd(compressor, **options):
    """Parallel SGD with a constant step."""
    return th.ParallelSGD(compressor, **{"step": STEP, **options})


def local(compressor, **options):
    """Local SGD with a decreasing step."""
    return th.LocalSGD(compressor, **{"step": DECREASING, "local_steps": 4, **options})


def compressors() -> dict:
    """Every registered compressor, by itself and behind error feedback."""
    found = {}
    for c in th.compressor_examples(64):
        for what, rule in (("none", th.NoFeedback()), ("memory", EF)):
            found[f"{c} / {what}"] = (sgd(c, feedback=rule), "digits", {})
    return found


def rules() -> dict:
    """Every feedback rule, with compressors of several kinds."""
    qsgd, sketch = th.Bucketed(th.QSGD(15), 16), th.CountSketch(width=20)
    return {
        "partial, top-k": (sgd(th.TopK(6), feedback=th.PartialErrorFeedback(0.3)), "digits", {}),
        "partial, QSGD": (sgd(th.QSGD(7), feedback=th.PartialErrorFeedback(0.5)), "digits", {}),
        "ConEF, top-k": (sgd(th.TopK(6), feedback=th.ContractiveErrorFeedback(qsgd)), "digits", {}),
        "ConEF, top-k, beta": (sgd(th.TopK(6), feedback=th.ContractiveErrorFeedback(qsgd, 0.2)), "digits", {}),
        "ConEF, sketch": (sgd(th.RandK(30), feedback=th.ContractiveErrorFeedback(sketch)), "digits", {}),
        "ConEF, half": (sgd(th.TopK(6), feedback=th.ContractiveErrorFeedback(th.HalfPrecision())), "digits", {}),
        "iConEF 1": (
            sgd(th.TopK(6), feedback=th.ImprovedContractiveErrorFeedback(th.Natural(), version=1)),
            "digits",
            {},
        ),
        "iConEF 2": (
            sgd(th.TopK(6), feedback=th.ImprovedContractiveErrorFeedback(th.Natural(), version=2)),
            "digits",
            {},
        ),
        "iConEF 2, QSGD": (sgd(th.ScaledSign(), feedback=th.ImprovedContractiveErrorFeedback(qsgd)), "digits", {}),
        "linear sketch": (sgd(th.TopK(6), feedback=th.LinearSketchFeedback(sketch, 0.9)), "digits", {}),
        "linear sketch, momentum": (
            sgd(th.TopK(6), feedback=th.LinearSketchFeedback(sketch, 0.9), momentum=0.5),
            "digits",
            {},
        ),
        "ConEF, TernGrad shared": (
            sgd(th.TernGrad(shared=True), feedback=th.ContractiveErrorFeedback(th.Natural(), 0.5)),
            "digits",
            {},
        ),
        "ConEF, PowerSGD": (
            sgd(th.PowerSGD(8, 8, 2), feedback=th.ContractiveErrorFeedback(th.Natural())),
            "digits",
            {},
        ),
        "partial, sparse": (sgd(th.TopK(20), feedback=th.PartialErrorFeedback(0.3)), "rcv1-like", {}),
        "ConEF, sparse": (sgd(th.TopK(20), feedback=th.ContractiveErrorFeedback(th.Natural())), "rcv1-like", {}),
        "linear sketch, sparse": (
            sgd(th.TopK(20), feedback=th.LinearSketchFeedback(th.CountSketch(width=500), 0.9)),
            "rcv1-like",
            {},
        ),
    }


def options() -> dict:
    """Every option of a method, one or two at a time."""
    f64 = {"wire_dtype": "float64"}
    return {
        "shuffle": (sgd(th.QSGD(7), sampling="shuffle", batch=3), "digits", {}),
        "contiguous": (sgd(th.QSGD(7), shards="contiguous"), "digits", {}),
        "by label, shuffle": (sgd(th.TopK(6), feedback=EF, shards="by_label", sampling="shuffle"), "digits", {}),
        "uniform": (sgd(th.QSGD(7), average="uniform"), "digits", {}),
        "quadratic average": (sgd(th.TopK(6), feedback=EF, step=DECREASING, average="quadratic"), "digits", {}),
        "suffix": (sgd(th.Natural(), average=th.Suffix(5)), "digits", {}),
        "polynomial": (sgd(th.Natural(), average=th.Polynomial(3.0, 1.0)), "digits", {}),
        "PL step": (sgd(th.Natural(), step=th.PolyakLojasiewicz(0.5)), "digits", {}),
        "momentum": (sgd(th.QSGD(7), momentum=0.9), "digits", {}),
        "momentum, loss": (sgd(th.QSGD(7), momentum=0.9, compress="loss"), "digits", {}),
        "nesterov": (sgd(th.Identity(), momentum=0.9, nesterov=True), "digits", {}),
        "nesterov, loss, memory": (
            sgd(th.TopK(6), feedback=EF, momentum=0.9, nesterov=True, compress="loss"),
            "digits",
            {},
        ),
        "radius": (sgd(th.QSGD(7), radius=0.3), "digits", {}),
        "radius, momentum": (sgd(th.Identity(), radius=0.3, momentum=0.5, average="uniform"), "digits", {}),
        "majority": (sgd(th.Sign(), aggregation="majority", step=th.Constant(0.001)), "digits", {}),
        "majority, scaled": (
            sgd(th.ScaledSign(), aggregation="majority", shards="by_label", step=th.Constant(0.001)),
            "digits",
            {},
        ),
        "loss": (sgd(th.QSGD(7), compress="loss"), "digits", {}),
        "loss, memory": (sgd(th.TopK(6), feedback=EF, compress="loss"), "digits", {}),
        "batch 8": (sgd(th.Identity(), batch=8), "digits", {}),
        "growing": (sgd(th.QSGD(7), batch=th.GrowingBatch(1.3)), "digits", {}),
        "growing, shuffle": (
            sgd(th.Identity(), batch=th.GrowingBatch(1.2, 2, "ceil"), sampling="shuffle"),
            "digits",
            {},
        ),
        "samples": (sgd(th.Identity(), batch=th.GrowingBatch(2.0)), "digits", {"samples": 40, "steps": None}),
        "gather": (sgd(th.Identity(), exchange="gather"), "digits", {}),
        "reduce, rand-k": (sgd(th.RandK(9, shared=True), exchange="reduce", feedback=EF), "digits", {}),
        "gather, rand-k": (sgd(th.RandK(9, shared=True), exchange="gather"), "digits", {}),
        "opening, QSGD shared": (sgd(th.TernGrad(shared=True), feedback=EF, average="uniform"), "digits", {}),
        "opening, buckets": (sgd(th.Bucketed(th.TernGrad(shared=True), 16)), "digits", {}),
        "opening, PowerSGD, momentum": (sgd(th.PowerSGD(8, 8, 2), feedback=EF, momentum=0.5), "digits", {}),
        "float64 wire": (sgd(th.QSGD(7), feedback=EF), "digits", f64),
        "float64 wire, top-k": (sgd(th.TopK(6), feedback=EF), "digits", f64),
        "float64 wire, none": (sgd(th.Identity()), "digits", f64),
        "float32": (sgd(th.QSGD(7), feedback=EF), "digits", {"dtype": "float32"}),
        "float32, top-k": (sgd(th.TopK(6), feedback=EF, average="uniform"), "digits", {"dtype": "float32"}),
        "float32, none": (sgd(th.Identity()), "digits", {"dtype": "float32"}),
        "records": (sgd(th.QSGD(7)), "digits", {"record_every": 4}),
        "start": (sgd(th.TopK(6), feedback=EF), "digits", {"x0": 0.1}),
    }


def local_steps() -> dict:
    """Local SGD."""
    return {
        "local": (local(th.Identity()), "digits", {}),
        "local, top-k, memory": (local(th.TopK(6), feedback=EF, average="quadratic"), "digits", {}),
        "local, QSGD": (local(th.QSGD(7), average="uniform", batch=2), "digits", {}),
        "local, partial": (local(th.TopK(6), feedback=th.PartialErrorFeedback(0.2)), "digits", {}),
        "local, ConEF": (local(th.TopK(6), feedback=th.ContractiveErrorFeedback(th.Natural())), "digits", {}),
        "local, growing": (local(th.QSGD(7), feedback=EF, batch=th.GrowingBatch(1.2)), "digits", {}),
        "local, contiguous, gather": (local(th.Identity(), shards="contiguous", exchange="gather"), "digits", {}),
        "local, shuffle": (local(th.RandK(9, shared=True), sampling="shuffle", average="uniform"), "digits", {}),
        "local, quadratic": (local(th.TopK(4), feedback=EF), "quadratic", {}),
        "local, rcv1-like": (local(th.TopK(20), feedback=EF), "rcv1-like", {}),
        "local, rcv1-like, none": (local(th.Identity(sparse=True)), "rcv1-like", {}),
    }


def problems() -> dict:
    """Every kind of problem, dense and sparse."""
    found = {}
    dense = (
        "quadratic",
        "quadratic, full covariance",
        "quadratic, d = 400",
        "sine valley",
        "digits, ridge",
        "digits, softmax",
        "Langevin",
        "DropConnect",
    )
    for name in dense:
        found[f"{name}: none"] = (sgd(th.Identity()), name, {})
        found[f"{name}: QSGD, memory"] = (sgd(th.QSGD(7), feedback=EF), name, {})
        found[f"{name}: top-k, memory"] = (sgd(th.TopK(5), feedback=EF, average="uniform"), name, {})
    for name in ("quadratic", "quadratic, full covariance"):
        found[f"{name}: none, uniform, radius"] = (sgd(th.Identity(), average="uniform", radius=2.0), name, {})
        found[f"{name}: batch"] = (sgd(th.Identity(), batch=4), name, {})
    sparse = ("rcv1-like", "rcv1-like, ridge", "rcv1-like, l2 = 0")
    free = th.Identity(sparse=True)
    for name in sparse:
        found[f"{name}: sparse"] = (sgd(free, compress="loss", average="uniform"), name, {})
        found[f"{name}: top-k, memory"] = (
            sgd(th.TopK(20), feedback=EF, step=DECREASING, average="quadratic"),
            name,
            {},
        )
        found[f"{name}: rand-k, memory"] = (sgd(th.RandK(200), feedback=EF), name, {})
    found |= {
        "sparse, loss, batch 3": (sgd(free, compress="loss", batch=3), "rcv1-like", {}),
        "sparse, loss, shuffle": (sgd(free, compress="loss", sampling="shuffle", shards="by_label"), "rcv1-like", {}),
        "sparse, full": (sgd(free), "rcv1-like", {}),
        "sparse, momentum": (sgd(free, compress="loss", momentum=0.9), "rcv1-like", {}),
        "sparse, radius": (sgd(free, compress="loss", radius=0.05), "rcv1-like", {}),
        "sparse, memory": (sgd(free, feedback=EF, compress="loss"), "rcv1-like", {}),
        "sparse rows, dense messages": (sgd(th.Identity()), "rcv1-like", {}),
        "sparse rows, QSGD, memory": (sgd(th.QSGD(7), feedback=EF), "rcv1-like", {}),
        "top-k, no memory": (sgd(th.TopK(20)), "rcv1-like", {}),
        "top-k, no memory, loss": (sgd(th.TopK(20), compress="loss"), "rcv1-like", {}),
        "rand-k, no memory": (sgd(th.RandK(200, unbiased=True)), "rcv1-like", {}),
        "rand-k, no memory, loss": (sgd(th.RandK(200), compress="loss"), "rcv1-like", {}),
        "block, memory": (sgd(th.RandomBlock(200), feedback=EF), "rcv1-like", {}),
        "block, no memory": (sgd(th.RandomBlock(200)), "rcv1-like", {}),
        "Bernoulli, memory": (sgd(th.Bernoulli(0.01), feedback=EF), "rcv1-like", {}),
        "Bernoulli, no memory, loss": (sgd(th.Bernoulli(0.01), compress="loss"), "rcv1-like", {}),
        "ultra, memory": (sgd(th.Ultra(0.5), feedback=EF), "rcv1-like", {}),
        "top-k, memory, momentum": (sgd(th.TopK(20), feedback=EF, momentum=0.9), "rcv1-like", {}),
        "top-k, memory, loss, batch 4": (sgd(th.TopK(20), feedback=EF, compress="loss", batch=4), "rcv1-like", {}),
        "top-k, memory, contiguous": (
            sgd(th.TopK(20), feedback=EF, shards="contiguous", sampling="shuffle"),
            "rcv1-like",
            {},
        ),
        "top-k, memory, float32": (sgd(th.TopK(20), feedback=EF), "rcv1-like", {"dtype": "float32"}),
        "top-k, memory, float64 wire": (sgd(th.TopK(20), feedback=EF), "rcv1-like", {"wire_dtype": "float64"}),
        "sparse, loss, float64 wire": (sgd(free, compress="loss"), "rcv1-like", {"wire_dtype": "float64"}),
        "sparse, loss, many steps": (
            sgd(free, compress="loss", step=DECREASING, average="quadratic"),
            "rcv1-like",
            {"steps": 1500},
        ),
        "top-k, memory, many steps": (
            sgd(th.TopK(20), feedback=EF, step=DECREASING, average="quadratic"),
            "rcv1-like",
            {"steps": 600},
        ),
        "non-convex: none": (sgd(th.Identity()), "rcv1-like, non-convex", {}),
        "non-convex: top-k, memory": (sgd(th.TopK(20), feedback=EF), "rcv1-like, non-convex", {}),
        "one worker, sparse": (sgd(free, compress="loss"), "rcv1-like", {"workers": 1}),
        "one worker, top-k": (sgd(th.TopK(20), feedback=EF), "rcv1-like", {"workers": 1}),
        "one worker, none": (sgd(th.Identity()), "digits", {"workers": 1}),
    }
    return found


def replicas() -> dict:
    """Independent replicas, side by side."""
    many = {"replicas": 9}
    chosen = {
        "QSGD, memory": (sgd(th.QSGD(7), feedback=EF), "digits"),
        "top-k, memory, uniform": (sgd(th.TopK(6), feedback=EF, average="uniform"), "digits"),
        "TernGrad shared": (sgd(th.TernGrad(shared=True)), "digits"),
        "PowerSGD, memory": (sgd(th.PowerSGD(8, 8, 2), feedback=EF), "digits"),
        "ConEF": (sgd(th.TopK(6), feedback=th.ContractiveErrorFeedback(th.Natural())), "digits"),
        "momentum, radius": (sgd(th.Natural(), momentum=0.5, radius=0.3), "digits"),
        "majority": (sgd(th.Sign(), aggregation="majority", step=th.Constant(0.001)), "digits"),
        "local": (local(th.TopK(6), feedback=EF, average="quadratic"), "digits"),
        "drawn": (sgd(th.Identity(), average="uniform"), "quadratic"),
        "drawn, radius": (sgd(th.Identity(), radius=1.0), "quadratic, full covariance"),
        "drawn, QSGD": (sgd(th.QSGD(3)), "quadratic"),
        "drawn, QSGD, memory": (sgd(th.QSGD(3), feedback=EF), "quadratic"),
        "growing": (sgd(th.Identity(), batch=th.GrowingBatch(1.3)), "quadratic"),
        "softmax": (sgd(th.QSGD(7)), "digits, softmax"),
        "sparse": (sgd(th.Identity(sparse=True), compress="loss", average="uniform"), "rcv1-like"),
        "sparse, top-k, memory": (sgd(th.TopK(20), feedback=EF), "rcv1-like"),
        "shuffle": (sgd(th.TopK(6), feedback=EF, sampling="shuffle", shards="by_label"), "digits"),
    }
    return {f"replicas: {name}": (*case, many) for name, case in chosen.items()}


def ranks() -> dict:
    """On MPI ranks, ten workers."""
    qsgd = th.Bucketed(th.QSGD(7, elias=True), 16)
    chosen = {
        "none": (sgd(th.Identity(), batch=2, average="uniform"), "digits"),
        "none, gather": (sgd(th.Identity(), exchange="gather"), "digits"),
        "QSGD": (sgd(th.QSGD(7)), "digits"),
        "QSGD, Elias, buckets": (sgd(qsgd, shards="contiguous"), "digits"),
        "NUQSGD, memory": (sgd(th.NUQSGD(6), feedback=EF), "digits"),
        "top-k, memory": (sgd(th.TopK(6), feedback=EF, step=DECREASING, average="quadratic"), "digits"),
        "rand-k shared, memory, momentum": (sgd(th.RandK(9, shared=True), feedback=EF, momentum=0.5), "digits"),
        "TernGrad shared": (sgd(th.TernGrad(shared=True)), "digits"),
        "PowerSGD, memory": (sgd(th.PowerSGD(8, 8, 2), feedback=EF), "digits"),
        "ATOMO": (sgd(th.SpectralAtomo(8, 8, 4.0)), "digits"),
        "count sketch": (sgd(th.CountSketch(width=16)), "digits"),
        "majority, radius": (sgd(th.Sign(), aggregation="majority", radius=0.3, step=th.Constant(0.001)), "digits"),
        "partial": (sgd(th.TopK(6), feedback=th.PartialErrorFeedback(0.3)), "digits"),
        "ConEF, opening": (
            sgd(th.TernGrad(shared=True), feedback=th.ContractiveErrorFeedback(th.Natural(), 0.5)),
            "digits",
        ),
        "linear sketch, momentum": (
            sgd(th.TopK(6), feedback=th.LinearSketchFeedback(th.CountSketch(20), 0.8), momentum=0.5),
            "digits",
        ),
        "local, QSGD, memory": (
            local(th.QSGD(7), feedback=EF, average="quadratic", batch=th.GrowingBatch(1.1, 2)),
            "digits",
        ),
        "local, none, uniform": (local(th.Identity(), average="uniform", shards="contiguous"), "digits"),
        "growing": (sgd(th.Identity(), batch=th.GrowingBatch(1.2, 2)), "digits"),
        "drawn": (sgd(th.Identity()), "quadratic"),
        "sparse": (sgd(th.Identity(sparse=True), compress="loss", average="uniform"), "rcv1-like"),
        "sparse, top-k, memory": (sgd(th.TopK(20), feedback=EF), "rcv1-like"),
        "sparse, rand-k, memory, shuffle": (
            sgd(th.RandK(50), feedback=EF, sampling="shuffle", shards="by_label"),
            "rcv1-like",
        ),
        "softmax": (sgd(th.QSGD(7), feedback=EF), "digits, softmax"),
    }
    return {f"{r} ranks: {name}": (*case, {"ranks": r}) for r in (2, 5) for name, case in chosen.items()}


@cache
def cases() -> dict:
    """All runs."""
    return compressors() | rules() | options() | local_steps() | problems() | replicas() | ranks()


# --- one run --------------------------------------------------------------------------------------------------------


def _digest(*arrays) -> str:
    sha = hashlib.sha256()
    for a in arrays:
        a = np.ascontiguousarray(a)
        sha.update(f"{a.dtype.str} {a.shape}".encode() + a.tobytes())
    return sha.hexdigest()[:16]


def measure(name: str, comm=None) -> dict:
    """What the record has of a run."""
    method, which, keywords = cases()[name]
    chosen = problem(which)
    keywords = {"workers": RANK_WORKERS if comm else WORKERS, "steps": 24, "seed": 7, **keywords}
    keywords.pop("ranks", None)
    if keywords["steps"] is None:
        del keywords["steps"]
    if "x0" in keywords:
        keywords["x0"] = np.full(chosen.d, keywords["x0"])
    elif "replicas" not in keywords:
        keywords["x0"] = np.linspace(-0.1, 0.1, chosen.d)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = th.run(method, chosen, comm=comm, **keywords)
    found = {
        "x": _digest(result.x, result.last),
        "costs": _digest(*(result.history[column] for column in COSTS)),
        "values": [
            float(result.fun),
            float(np.linalg.norm(result.x)),
            float(np.ravel(result.x)[-1]),
            float(np.linalg.norm(result.last)),
            float(result.history["bits_up"][-1]),
        ],
        "memory_bytes": int(result.memory_bytes),
    }
    if comm is None:  # on ranks, each has those of its own workers alone
        found["memory"] = _digest(result.memory)
    return found


def _measure_all(names) -> dict:
    return {name: measure(name) for name in names}


def measure_on_ranks(names, ranks: int) -> dict:
    """The same for runs on so many ranks, all in one job."""
    if not names:
        return {}
    beside = Path(sys.executable).parent / "mpirun"
    with tempfile.TemporaryDirectory() as folder:
        wanted, answer = Path(folder) / "wanted.json", Path(folder) / "answer.json"
        wanted.write_text(json.dumps(list(names)))
        command = [str(beside) if beside.is_file() else "mpirun", "-n", str(ranks), sys.executable, __file__, "job"]
        subprocess.run([*command, wanted, answer], check=True, cwd=Path(__file__).parent.parent)
        return json.loads(answer.read_text())


def job(wanted: str, answer: str) -> None:
    """On every rank: do the runs; rank 0 writes what it found."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    with th.abort_on_error(comm):
        found = {name: measure(name, comm) for name in json.loads(Path(wanted).read_text())}
        if comm.Get_rank() == 0:
            Path(answer).write_text(json.dumps(found))


def measure_many(names, processes: int = 1) -> dict:
    """Measure runs of all kinds."""
    on = {name: cases()[name][2].get("ranks", 0) for name in names}
    here = [name for name in names if not on[name]]
    found = {}
    if processes > 1:
        pieces = [here[k :: 4 * processes] for k in range(4 * processes)]
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            for part in pool.map(_measure_all, pieces):
                found |= part
    else:
        found |= _measure_all(here)
    for ranks in sorted({*on.values()} - {0}):
        found |= measure_on_ranks([name for name in names if on[name] == ranks], ranks)
    return {name: found[name] for name in names}


# --- the record -----------------------------------------------------------------------------------------------------


def tools() -> dict:
    """What the digests depend on."""
    flags = hashlib.sha256(get_host_cpu_features().encode()).hexdigest()[:16]
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "machine": platform.machine(),
        "processor flags": flags,
    }


def differences(name: str, found: dict, record: dict) -> list[str]:
    """What of a run differs from the record, in words; digests count where the tools are the record's."""
    before, exact = record["runs"][name], tools() == record["tools"]
    different = [
        f"{what}: {found.get(what)} instead of {before[what]}"
        for what in ("x", "memory", "costs", "memory_bytes")
        if what in before and found.get(what) != before[what] and (exact or what == "memory_bytes")
    ]
    near = np.allclose(found["values"], before["values"], rtol=TOLERANCE, atol=TOLERANCE)
    return different if near else [*different, f"values: {found['values']} instead of {before['values']}"]


def main(what: str, *names: str) -> int:
    """Write the record, or compare runs with it."""
    if what == "job":
        job(*names)
        return 0
    if what == "write":
        found = measure_many(list(cases()), os.cpu_count() or 1)
        RECORD.write_text(json.dumps({"tools": tools(), "runs": found}, indent=1) + "\n")
        print(f"{len(found)} runs written to {RECORD.name}")
        return 0
    record = json.loads(RECORD.read_text())
    chosen = [name for name in cases() if not names or any(part in name for part in names)]
    found = measure_many(chosen, os.cpu_count() or 1)
    bad = {name: differences(name, found[name], record) for name in chosen}
    for name, different in bad.items():
        if different:
            print(f"{name}: {'; '.join(different)}")
    wrong = sum(map(bool, bad.values()))
    print(f"{len(chosen)} runs compared, {wrong} different")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
