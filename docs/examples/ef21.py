"""EF21 in 15 lines: each worker sends the compressed change of its gradient.

Results are bit-identical in a notebook and on ranks.

Richtárik, Sokolov, Fatkhullin, "EF21: A new, simpler, theoretically better, and practically faster error feedback"
(NeurIPS 2021), Algorithm 1, from g_i = C(gradient of f_i at x_0).
"""

import hashlib
from typing import NamedTuple

import theory as th


@th.method
class EF21(NamedTuple):
    compressor: NamedTuple
    step: NamedTuple
    batch: int
    sampling: str = "shuffle"
    shards: str = "contiguous"  # each worker has rows of its own

    def round(self, run):
        p, known, g = run.scratch(), run.rows("g_i"), run.vector("g")
        run.set(p, known, scale=-1.0)
        run.add_gradient(p, at=run.x)  # p = gradient of f_i at x - g_i
        message = run.compress(self.compressor, p)  # c_i = C(p)
        run.add(known, message)  # g_i = g_i + c_i
        run.add(g, run.gather(message))  # g = g + mean c_i
        run.add(run.x, g, scale=-run.eta)  # x = x - eta g


def train(comm=None, steps=300):
    """EF21 on breast cancer, 8 workers with 70 rows each; the ranks of a communicator share the workers."""
    data = th.load_data("breast_cancer", comm=comm).scaled()
    problem = th.logistic((data.X[:560], data.y[:560]), l2=0.01)
    method = EF21(th.TopK(3), th.Constant(0.5 / th.lipschitz(problem)), batch=70)  # a batch is all rows of a worker
    return th.run(method, problem, workers=8, steps=steps, comm=comm)


if __name__ == "__main__":
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    with th.abort_on_error(comm):  # a rank that raises ends the job; the others would wait for it
        result = train(comm)
        if comm.Get_rank() == 0:
            digest = hashlib.sha256(result.x.tobytes()).hexdigest()
            print(f"{comm.Get_size()} ranks: f = {result.fun:.8f}, x = {digest[:16]}")
