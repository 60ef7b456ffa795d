"""Prints what compressors of lecture 4, their moments and a short run give, bit for bit: the same everywhere."""

import numpy as np

import theory as th
from theory.compressors import reference
from theory.measure import moments

v = np.array([3.0, 2.0, -130.0, 7.0, 9.0, 56.0, -25.0, 23.0])
for c in (
    th.Identity(), th.Bernoulli(0.5), th.OptimalSparsifier(3.0), th.TopK(3), th.RandK(3), th.Sign(), th.ScaledSign(),
    th.Ternary(200.0), th.TernGrad(), th.QSGD(1), th.QSGD(3), th.QSGD(7), th.QSGD(7, np.inf),
):  # fmt: skip
    for seed in range(3):
        key = th.key(seed, "lecture")
        plain = reference(c, v, key, np.float32)
        assert np.array_equal(plain, th.compress(c, v, key)), c
        print(c, *map(float.hex, plain.tolist()))
    found = moments(c, v, 20, threads=2)
    print("moments", *(float(column.mean()).hex() for column in (found.error, found.second, found.nonzeros)))
problem = th.quadratic(np.ones(4), covariance=0.25)
result = th.run(th.ParallelSGD(th.QSGD(1), step=th.Constant(0.1)), problem, workers=2, steps=20, seed=0)
print("run", *map(float.hex, result.x.tolist()), float(result.fun).hex())
