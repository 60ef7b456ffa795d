"""A job for mpirun: a server's state divided over the ranks, and the bytes that the ranks hand to MPI.

Usage: ``mpirun -n R python tests/mpi_sharded.py FILE``.
"""

from __future__ import annotations

import sys

import numpy as np

import theory as th

D, STEPS = 101, 6


class Counting:
    """A communicator that counts the bytes that this rank sends to others in exchanges of vectors."""

    def __init__(self, comm):
        self.comm, self.bytes = comm, 0

    def __getattr__(self, name):
        return getattr(self.comm, name)

    def _alltoallv(self, sent):
        buffer, (counts, _) = sent
        self.bytes += buffer.itemsize * (sum(counts) - counts[self.comm.Get_rank()])

    def Alltoallv(self, sent, received):  # noqa: N802
        self._alltoallv(sent)
        return self.comm.Alltoallv(sent, received)

    def Ialltoallv(self, sent, received):  # noqa: N802
        self._alltoallv(sent)
        return self.comm.Ialltoallv(sent, received)

    def Allgatherv(self, sent, received):  # noqa: N802
        self.bytes += sent.nbytes * (self.comm.Get_size() - 1)
        return self.comm.Allgatherv(sent, received)

    def Iallgatherv(self, sent, received):  # noqa: N802
        self.bytes += sent.nbytes * (self.comm.Get_size() - 1)
        return self.comm.Iallgatherv(sent, received)


def make_problem():
    """The same problem on every rank."""
    rng = np.random.default_rng(0)
    return th.ridge((rng.standard_normal((60, D)), rng.standard_normal(60)), l2=0.01)


def train(divided: bool, workers: int, comm=None, compressor=None):
    """A run of Adam in single precision, whose state is divided or not."""
    server = th.Sharded(th.Adam()) if divided else th.Adam()
    memory = th.NoFeedback() if compressor is None else th.ErrorFeedback()
    method = th.ParallelSGD(compressor or th.Identity(), th.Constant(0.01), memory, server=server)
    known = dict(workers=workers, steps=STEPS, dtype=np.float32, record_every=STEPS, comm=comm)
    return th.run(method, make_problem(), **known)


if __name__ == "__main__":
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    found = {}
    with th.abort_on_error(world):
        for divided in (False, True):
            counting = Counting(world)
            result = train(divided, world.Get_size(), counting)
            found[f"bytes, divided={divided}"] = np.array(world.allgather(counting.bytes))
            found[f"x, divided={divided}"] = result.x
            kept = [state.nbytes for state in result.server.values()]
            found[f"state, divided={divided}"] = np.array(world.allgather(sum(kept)))
            for name in ("message_bytes_up", "message_bytes_down"):
                found[f"{name}, divided={divided}"] = result.history[name]
        if world.Get_rank() == 0:
            np.savez(sys.argv[1], **found)
