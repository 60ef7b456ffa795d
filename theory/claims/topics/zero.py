"""Claims about ZeRO: the bytes that workers hold and send, with error feedback and compressed gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...cluster import collectives
from ...compressors import CountSketch, Identity, TopK
from ...methods import Adam, ErrorFeedback, LinearSketchFeedback, NoFeedback, ParallelSGD, Sharded
from ...methods.schedules import Constant
from ...problems import quadratic
from .. import claim, identity

PSI, RANKS = 7.5e9, 64  # the example of the ZeRO paper
PRINTED = (120.0, 31.4, 16.6, 1.9)  # GB, by stage
D, WORKERS, SINGLE = 960, 8, 4.0


@claim(
    "zero.memory",
    of=bounds.zero_memory,
    subject=lambda stage: Sharded(Adam()) if stage else Adam(),
    mutants={
        "the moments are not divided": lambda stage: Adam(),
        "always divided": lambda stage: Sharded(Adam()),
    },
)
def _(context):
    problem = quadratic(np.ones(D), covariance=1.0)
    for name, compressor, rule, each in (
        ("no memory", Identity(), NoFeedback(), 0.0),
        ("error feedback", TopK(96), ErrorFeedback(), SINGLE),
        ("a sketch of a tenth", TopK(96), LinearSketchFeedback(CountSketch(width=D // 10), 0.9), 0.1 * SINGLE),
    ):
        for stage in (0, 1):
            method = ParallelSGD(compressor, Constant(0.01), rule, server=context.subject(stage))
            known: dict[str, Any] = dict(workers=WORKERS, steps=3, dtype=np.float32, record_every=3)
            result = context.run(method, problem, name, **known)
            found = result.last.nbytes + D * SINGLE + result.server_bytes + result.memory_bytes  # D: the gradient
            predicted = bounds.zero_memory(D, WORKERS, stage, each, 2 * SINGLE, SINGLE, SINGLE)
            yield identity(f"bytes of a worker, stage {stage}, {name}", found, predicted)


def _exchange(machine, vectors, gradient_words: int, stage: int) -> None:
    """The messages of a step, each carried out: slices to their owners, and from their owners to all."""
    workers, size = len(vectors), len(vectors[0]) // len(vectors)

    def all_to_all(words):
        for shift in range(1, workers):
            machine.round([(r, (r + shift) % workers, vectors[r][:words]) for r in range(workers)])

    all_to_all(gradient_words)
    if stage == 0:
        all_to_all(gradient_words)
    for _ in range((0, 1, 1, 2)[stage]):
        all_to_all(size)


@claim(
    "zero.volume",
    of=bounds.zero_volume,
    subject=_exchange,
    mutants={
        "stage 3 gathers the parameters once": lambda machine, vectors, words, stage: _exchange(
            machine, vectors, words, min(stage, 2)
        ),
        "parameters are compressed, too": lambda machine, vectors, words, stage: (
            _exchange(machine, vectors, words, 0) if stage < 3 else _exchange(machine, vectors, words, stage)
        ),
        "gradients in full": lambda machine, vectors, words, stage: _exchange(
            machine, vectors, len(vectors[0]) // len(vectors), stage
        ),
    },
)
def _(context):
    vectors = np.zeros((WORKERS, D))
    for ratio in (1.0, 0.05):
        for stage in (0, 1, 2, 3):
            machine = collectives.Machine()
            context.subject(machine, vectors, round(ratio * D / WORKERS), stage)
            label = f"words that a worker sends, stage {stage}, gradients times {ratio:g}"
            yield identity(label, machine.cost().words, bounds.zero_volume(D, WORKERS, stage, ratio))


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
