"""A job for mpirun: run several groups of methods and print, for each, a digest of what must not depend on the ranks.

Usage: ``mpirun -n R python tests/mpi_job.py WORKERS WHAT``; WHAT is "digests GROUP...", or a way to go wrong.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time

import numpy as np
import scipy.sparse as sp

import theory as th

STEPS = 25


def make_problem(shift=0.0):
    """A small sparse problem, the same on every rank."""
    rng = np.random.default_rng(0)
    X = sp.random(40, 90, 0.1, format="csr", random_state=1)
    X.data += shift
    return th.logistic((X, np.where(rng.random(40) < 0.5, -1.0, 1.0)), l2=0.05)


def methods():
    """One method for each layout and kind of message."""
    step = th.InverseTime(2.0, 0.05, 100.0)
    memory = th.ErrorFeedback()
    return [
        th.ParallelSGD(th.Identity(), step=step, batch=2, average="uniform"),
        th.ParallelSGD(th.Identity(sparse=True), step=step, compress="loss", average="quadratic"),
        th.ParallelSGD(th.TopK(5), step=step, feedback=memory, average="quadratic"),
        th.ParallelSGD(th.RandK(5), step=step, feedback=memory, sampling="shuffle", shards="by_label"),
        th.ParallelSGD(th.Bucketed(th.QSGD(7, code=th.Elias()), 40), step=step, shards="contiguous"),
        th.ParallelSGD(th.Identity(), step=step, exchange="gather"),
        th.ParallelSGD(th.RandK(5, shared=True), step=step, feedback=memory, momentum=0.5),
        th.ParallelSGD(th.PowerSGD(9, 10, rank=2), step=step, feedback=memory),
        th.ParallelSGD(th.Bucketed(th.TernGrad(shared=True), 40), step=step),
    ]


def memories():
    """Memories that are held compressed, in a step of one half and of two."""
    step = th.InverseTime(2.0, 0.05, 100.0)
    return [
        th.ParallelSGD(th.TernGrad(shared=True), step=step, feedback=th.ContractiveErrorFeedback(th.Natural(), 0.5)),
        th.ParallelSGD(th.TopK(9), step=step, feedback=th.LinearSketchFeedback(th.CountSketch(30), 0.8), momentum=0.5),
    ]


def rounds():
    """Several steps between two exchanges, and batches that grow."""
    step, batch = th.InverseTime(4.0, 0.05, 400.0), th.GrowingBatch(1.1, first=2)
    return [
        th.LocalSGD(
            th.QSGD(7), step=step, local_steps=5, feedback=th.ErrorFeedback(), average="quadratic", batch=batch
        ),
        th.LocalSGD(th.Identity(), step=step, local_steps=5, average="uniform", shards="contiguous"),
        th.ParallelSGD(th.Identity(), step=step, batch=batch),
    ]


def servers():
    """Rules with moments, and both ways compressed."""
    step, sixth = th.Constant(0.02), (slice(0, 15), slice(15, 90))
    return [
        th.ef_adam(th.TopK(9), step),
        th.conef_adam(th.RandK(9), th.Bucketed(th.QSGD(15), 30), step),
        th.ef_lamb(th.TopK(9), step, server=th.LAMB(decay=0.01, layers=sixth)),
        th.conef_lamb(th.TopK(9), th.HalfPrecision(), step, server=th.LAMB(layers=sixth)),
        th.OneBitAdam(step, 5, down=th.Bucketed(th.ScaledSign(norm=2), 12)),
        th.LocalSGD(th.TopK(9), th.Constant(0.5), 5, th.ErrorFeedback(), server=th.OuterStep(0.7, 0.9, nesterov=True)),
        th.LocalSGD(th.Identity(), th.Constant(0.5), 5, server=th.Adam(0.05)),
        th.ParallelSGD(th.Identity(), step=step, server=th.Sharded(th.Adam())),
        th.ef_adam(th.TopK(9), step, server=th.Sharded(th.Adam(decay=0.01)), compress="loss"),
        th.ParallelSGD(th.PowerSGD(9, 10, rank=2), step, th.ErrorFeedback(), server=th.Sharded(th.Momentum(0.5, True))),
        th.LocalSGD(th.Identity(), th.Constant(0.5), 5, server=th.Sharded(th.OuterStep(0.7))),
    ]


def hostile():
    """Robust servers some of whose workers are hostile."""
    step, memory, gather = th.Constant(0.5), th.ErrorFeedback(), {"exchange": "gather"}
    mixed, some = th.NNM(2, th.TrimmedMean(2)), (0, 3, 6)
    return [
        th.ParallelSGD(None, step, server=th.Attacked(th.Mean(), th.SignFlip(), 2), **gather),
        th.ParallelSGD(th.TopK(9), step, memory, server=th.Attacked(mixed, th.ALIE(), 2)),
        th.ParallelSGD(th.QSGD(7), step, server=th.Attacked(th.Bucketing(2, th.Median()), th.Mimic(1), (0,))),
        th.ParallelSGD(th.QSGD(7), step, server=th.Attacked(th.GeometricMedian(), th.OneSided(np.nan), some)),
        th.LocalSGD(th.TopK(9), step, 5, memory, server=th.Attacked(th.MultiKrum(2, 3), th.InnerProduct(2.0), 2)),
        th.ParallelSGD(
            th.Natural(), step, server=th.Robust(th.CenteredClipping(1.0), th.Momentum(0.5)), shards="by_label"
        ),
    ]


GROUPS = {"methods": methods, "memories": memories, "rounds": rounds, "servers": servers, "hostile": hostile}


def digest(results) -> str:
    """Digest of x, the last iterate and every column of the history but the seconds."""
    sha = hashlib.sha256()
    for result in results:
        sha.update(result.x.tobytes() + result.last.tobytes())
        for name in result.history.dtype.names:
            if not name.startswith("seconds"):
                sha.update(result.history[name].tobytes())
    return sha.hexdigest()


def main(workers: int, what: str) -> None:
    """Do the job on this rank."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()
    with th.abort_on_error(comm):
        problem = make_problem(0.5 if what == "other data" and rank == 1 else 0.0)
        first = methods()[2]
        if what.startswith("digests"):
            for name in what.split()[1:]:
                runs = [th.run(m, problem, workers=workers, steps=STEPS, seed=3, comm=comm) for m in GROUPS[name]()]
                found = digest(runs)
                assert comm.allgather(found) == [found] * comm.Get_size()
                if rank == 0:
                    print(f"digest of {name}: {found}", flush=True)
        elif what == "other seed":
            th.run(first, problem, workers=workers, steps=STEPS, seed=rank, comm=comm)
        elif what == "other data":
            th.run(first, problem, workers=workers, steps=STEPS, seed=0, comm=comm)
        elif what == "raise":

            def callback(intermediate_result):
                raise RuntimeError("on purpose")

            th.run(first, problem, workers=workers, steps=STEPS, seed=0, comm=comm, callback=callback)
        elif what == "raise on all":
            th.run(first, problem, workers=workers, steps=-1, seed=0, comm=comm)
        elif what == "kill":
            th.run(first, problem, workers=workers, steps=STEPS, seed=0, comm=comm)
            print("pid", os.getpid(), flush=True)
            time.sleep(3)  # until the launcher has passed it on
            if rank == comm.Get_size() - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(600)
        elif what == "callback stops":

            def stop(intermediate_result):
                raise StopIteration

            result = th.run(first, problem, workers=workers, steps=STEPS, seed=0, comm=comm, callback=stop)
            assert (result.nit, result.status, result.success) == (0, 99, False)
            if rank == 0:
                print("stopped everywhere", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), " ".join(sys.argv[2:]))
