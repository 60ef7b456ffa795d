"""Claims about ZeRO: the bytes that workers hold and send, with error feedback and compressed gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...cluster import run_zero
from ...compressors import CountSketch, Identity, TopK
from ...methods import Adam, ErrorFeedback, LinearSketchFeedback, NoFeedback, ParallelSGD, Sharded
from ...methods.schedules import Constant
from ...problems import quadratic, two_layer
from .. import claim, identity

PSI, RANKS = 7.5e9, 64  # the example of the ZeRO paper
PRINTED = (120.0, 31.4, 16.6, 1.9)  # GB, by stage
D, WORKERS, SINGLE = 960, 8, 4.0


def _network(width=16):
    """A network whose layers divide evenly: 48 and 12 parameters times the width."""
    rng = np.random.default_rng(0)
    return two_layer((rng.standard_normal((48, 48)), np.arange(48) % 12), width=width)


def _exchanged(run, stage):
    """What would be held if stage 2 divided the parameters, not the gradients."""
    held = run.held
    swapped = held | {"parameters": held["gradients"], "gradients": held["parameters"]}
    return run._replace(held=swapped if stage == 2 else held)


@claim(
    "zero.memory",
    of=bounds.zero_memory,
    subject=(lambda stage: Sharded(Adam()) if stage else Adam(), run_zero),
    mutants={
        "the moments are not divided": (lambda stage: Adam(), run_zero),
        "always divided": (lambda stage: Sharded(Adam()), run_zero),
        "gradients are not divided": (
            lambda stage: Sharded(Adam()) if stage else Adam(),
            lambda network, workers, stage, **known: run_zero(network, workers, min(stage, 1), **known),
        ),
        "parameters are divided, not gradients": (
            lambda stage: Sharded(Adam()) if stage else Adam(),
            lambda network, workers, stage, **known: _exchanged(run_zero(network, workers, stage, **known), stage),
        ),
        "parameters are not divided": (
            lambda stage: Sharded(Adam()) if stage else Adam(),
            lambda network, workers, stage, **known: run_zero(network, workers, min(stage, 2), **known),
        ),
    },
)
def _(context):
    server, run = context.subject
    problem, network = quadratic(np.ones(D), covariance=1.0), _network()
    for name, compressor, rule, each in (
        ("no memory", Identity(), NoFeedback(), 0.0),
        ("error feedback", TopK(96), ErrorFeedback(), SINGLE),
        ("a sketch of a tenth", TopK(96), LinearSketchFeedback(CountSketch(width=D // 10), 0.9), 0.1 * SINGLE),
    ):
        for stage in (0, 1):
            method = ParallelSGD(compressor, Constant(0.01), rule, server=server(stage))
            known: dict[str, Any] = dict(workers=WORKERS, steps=3, dtype=np.float32, record_every=3)
            result = context.run(method, problem, name, **known)
            found = result.last.nbytes + D * SINGLE + result.server_bytes + result.memory_bytes  # D: the gradient
            predicted = bounds.zero_memory(D, WORKERS, stage, each, 2 * SINGLE, SINGLE, SINGLE)
            yield identity(f"bytes of a worker, stage {stage}, {name}", found, predicted)
    for memory in (False, True):
        for stage in (0, 1, 2, 3):
            found = run(network, WORKERS, stage, steps=2, share=0.125, memory=memory)
            alone = {  # bytes of the memory, the optimizer, a gradient and a parameter
                "parameters": (0.0, 0.0, 0.0, SINGLE),
                "gradients": (0.0, 0.0, SINGLE, 0.0),
                "optimizer": (0.0, 2 * SINGLE, 0.0, 0.0),
                "memory": (SINGLE * memory, 0.0, 0.0, 0.0),
            }
            for part, held in found.held.items():
                label = f"bytes of a network's {part}, stage {stage}" + ", error feedback" * memory
                yield identity(label, held, bounds.zero_memory(network.d, WORKERS, stage, *alone[part]))


@claim(
    "zero.volume",
    of=bounds.zero_volume,
    subject=run_zero,
    mutants={
        "stage 3 gathers the parameters once": lambda network, workers, stage, **known: run_zero(
            network, workers, min(stage, 2), **known
        ),
        "gradients in full": lambda network, workers, stage, **known: run_zero(
            network, workers, stage, **(known | {"share": 1.0})
        ),
        "the gradients are gathered, not the parameters": lambda network, workers, stage, **known: run_zero(
            network, workers, 0, **known
        ),
    },
)
def _(context):
    for share, workers, network in ((1.0, WORKERS, _network()), (0.125, WORKERS, _network()), (0.25, 4, _network(8))):
        for stage in (0, 1, 2, 3):
            run = context.subject(network, workers, stage, steps=2, share=share)
            label = f"numbers that a worker sends, N={workers}, stage {stage}, gradients times {share:g}"
            yield identity(label, run.sent, bounds.zero_volume(network.d, workers, stage, share))


@claim(
    "zero.example",
    of=bounds.zero_memory,
    subject=(bounds.zero_memory, bounds.zero_volume),
    mutants={
        "8 bytes of moments": (
            lambda psi, n, stage, memory=0.0: bounds.zero_memory(psi, n, stage, memory, optimizer_bytes=8.0),
            bounds.zero_volume,
        ),
        "a memory that is divided": (
            lambda psi, n, stage, memory=0.0: bounds.zero_memory(psi, n, stage, memory / n),
            bounds.zero_volume,
        ),
        "parameters gathered once": (
            bounds.zero_memory,
            lambda psi, n, stage=0, ratio=1.0: bounds.zero_volume(psi, n, min(stage, 2), ratio),
        ),
    },
)
def _(context):
    memory, volume = context.subject
    for stage, printed in enumerate(PRINTED):
        label = f"GB of a worker, stage {stage}, beside the printed number"
        yield identity(label, round(float(memory(PSI, RANKS, stage)) / 1e9, 1), printed)
        added = (memory(PSI, RANKS, stage, memory=4.0) - memory(PSI, RANKS, stage)) / 1e9
        yield identity(f"GB that error feedback adds, stage {stage}", float(added), 4.0 * PSI / 1e9)
    whole, third = float(volume(PSI, RANKS)), float(volume(PSI, RANKS, 3))
    ratio = float(memory(PSI, RANKS, 3, memory=4.0)) / float(memory(PSI, RANKS, 3))
    yield identity("error feedback at stage 3, times the memory", ratio, 17.0)
    yield identity("volume of stage 3 over data parallelism", third / whole, 1.5)
    yield identity("saved by a twentieth, data parallelism", 1.0 - float(volume(PSI, RANKS, 0, 0.05)) / whole, 0.95)
    saved = 1.0 - float(volume(PSI, RANKS, 3, 0.05)) / third
    yield identity("saved by a twentieth, stage 3", saved, 0.95 / 3.0)
    yield identity("stage 3 with gradients that cost nothing", float(volume(PSI, RANKS, 3, 0.0)) / whole, 1.0)
