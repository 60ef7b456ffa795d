"""Memory and communication of training in which workers share parameters, gradients and moments (ZeRO).

Stage 0 is data parallelism: every worker holds everything.  Stage 1 divides the optimizer's state over the workers,
stage 2 the gradients, too, stage 3 the parameters, too.  The memory of an error feedback rule belongs to its worker:
nobody else has it, so no stage divides it.
"""

from __future__ import annotations

from .closed_form import formula

STAGES = (0, 1, 2, 3)


@formula(
    "memory >= 0",
    "optimizer_bytes >= 0",
    "gradient_bytes >= 0",
    "parameter_bytes >= 0",
    "parameters > 0",
    f"stage in {STAGES}",
)
def zero_memory(
    parameters: float,
    workers: int,
    stage: int = 0,
    memory: float = 0.0,
    optimizer_bytes: float = 12.0,
    gradient_bytes: float = 2.0,
    parameter_bytes: float = 2.0,
) -> float:
    """Bytes that a worker holds under data parallelism and ZeRO, with an error memory.

    Title: Memory under ZeRO with an error memory.
    Title (example): The example of ZeRO, and what error feedback adds to it.
    Setting: Psi parameters on N workers; by default mixed precision with Adam: half-precision parameters and gradients,
    and 12 bytes for a parameter and its two moments in single precision.
    Statement: Psi (b_p + b_g + b_o + b_e), where stage 1 divides b_o by N, stage 2 also b_g, and stage 3 also b_p; the
    bytes b_e of the error memory are never divided.
    Statement (example): 7.5 billion parameters on 64 workers take 120, 31.4, 16.6 and 1.9 GB a worker by stage; stage 3
    sends half as much again. Error feedback in single precision adds 30 GB at every stage, so that stage 3 takes 17
    times its memory; gradients at a twentieth of their size save 95 % of the communication of data parallelism, and
    31.7 % of stage 3, which sends as much as data parallelism without compression even if its gradients cost nothing.
    Kind: identity.
    Proof: Count: the memories of the workers differ, so that none can be rebuilt from the slices of others.
    Proof (example): Count.
    Source: [rajbhandari2020zero], section 5; with a memory: derived.
    Source (example): [rajbhandari2020zero], figure 1 and section 7; with a memory: derived.
    parameters: Psi, above 0.
    stage: 0 (data parallelism), 1, 2 or 3.
    memory: b_e, bytes of the error memory for each parameter: 4 for error feedback in single precision, 4 s for a
        sketch of relative size s, 0 without; ``result.memory_bytes / d`` of a run.
    optimizer_bytes, gradient_bytes, parameter_bytes: b_o, b_g, b_p.

    >>> [round(zero_memory(7.5e9, 64, stage) / 1e9, 1) for stage in range(4)]  # GB
    [120.0, 31.4, 16.6, 1.9]
    >>> round(zero_memory(7.5e9, 64, 3, memory=4.0) / 1e9, 1)
    31.9
    """
    part = parameters / workers
    return (
        parameter_bytes * (part if stage >= 3 else parameters)
        + gradient_bytes * (part if stage >= 2 else parameters)
        + optimizer_bytes * (part if stage >= 1 else parameters)
        + memory * parameters
    )


@formula("0 <= ratio <= 1", "parameters > 0", f"stage in {STAGES}")
def zero_volume(parameters: float, workers: int, stage: int = 0, ratio: float = 1.0) -> float:
    """Numbers that a worker sends in a step under data parallelism and ZeRO, with compressed gradients.

    Title: Communication under ZeRO with compressed gradients.
    Setting: Psi parameters on N workers, exchanged by rings or directly; a compressed gradient takes ``ratio`` times
    the room, and so does the mean of several, as for coordinates that all workers share or if it is compressed again.
    Statement: (N - 1)/N Psi times 2 ratio in stage 0 (gradients are reduced and gathered), ratio + 1 in stages 1 and 2
    (gradients are scattered, new parameters gathered), and ratio + 2 in stage 3 (parameters are gathered before the
    forward and before the backward pass): at most a half and a third of it can be saved by compressing gradients.
    Kind: identity.
    Proof: A reduction is a scatter and a gather of slices; of the parameters, which no compressor of gradients touches,
    stages 1 and 2 gather one copy in a step and stage 3 two.
    Source: [rajbhandari2020zero], section 7, for ratio = 1; derived.
    parameters: Psi, above 0.
    stage: 0 (data parallelism), 1, 2 or 3.
    ratio: Size of a compressed gradient, from 0 to 1.

    >>> zero_volume(100.0, 2, 3) / zero_volume(100.0, 2), zero_volume(100.0, 2, 3, ratio=0.0) / zero_volume(100.0, 2)
    (1.5, 1.0)
    """
    one = parameters * (workers - 1) / workers
    gathered = (ratio, 1.0, 1.0, 2.0)[stage]
    return ratio * one + gathered * one
