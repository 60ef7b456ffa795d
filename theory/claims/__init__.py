"""Claims: a statement, its source, its bound and a measurement become a verdict; the ledger shows them all."""

from . import coding, feedback, memsgd, minibatch, qsgd, sgd, sparsifiers
from .base import (
    Check,
    Claim,
    Context,
    Measurement,
    claim,
    equality,
    find_claim,
    identity,
    list_claims,
    lower,
    rate,
    upper,
)
from .ledger import Explanation, exit_code, explain, ledger
from .verify import Verification, verify

__all__ = [
    "Check",
    "Claim",
    "Context",
    "Explanation",
    "Measurement",
    "Verification",
    "claim",
    "coding",
    "equality",
    "exit_code",
    "explain",
    "find_claim",
    "identity",
    "ledger",
    "list_claims",
    "lower",
    "feedback",
    "memsgd",
    "minibatch",
    "qsgd",
    "sgd",
    "sparsifiers",
    "rate",
    "upper",
    "verify",
]
