"""The subjects of the course, which are also names of folders and modules in several subpackages."""

from __future__ import annotations

from typing import Any

SUBJECTS = {
    "sgd": "SGD: rates, averages, the Polyak-Lojasiewicz inequality",
    "batches": "Large and growing batches, gradient diversity",
    "quantizers": "Quantizers and their codes",
    "sparsifiers": "Sparsifiers (top-k, random-k), low rank, sketches",
    "memory": "Error feedback",
    "differences": "Compressed differences: EF21, DIANA, MARINA",
    "local": "Local steps, clients (federated learning), client drift",
    "graphs": "Graphs: gossip without a server",
    "adaptive": "Adaptive steps, signs of momenta, ZeRO",
    "robust": "Hostile (Byzantine) workers, robust aggregation",
    "privacy": "Privacy",
    "delay": "Late (stale) gradients, asynchronous SGD, stragglers, threads without locks",
    "cost": "Communication cost and time to accuracy",
}


def subject_of(thing: Any) -> str:
    """The subject of a function, a class, or a module's name: that of the module which defines it, or "".

    Examples
    --------
    >>> from theory import EF21, bounds
    >>> subject_of(EF21), subject_of(bounds.qsgd_variance), subject_of(int)
    ('differences', 'quantizers', '')
    """
    module = thing if isinstance(thing, str) else getattr(thing, "__module__", None) or ""
    parts = module.split(".")
    return parts[2] if parts[0] == __name__.partition(".")[0] and len(parts) > 2 and parts[2] in SUBJECTS else ""
