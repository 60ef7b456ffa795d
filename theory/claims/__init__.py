"""Claims: from a statement, its source, its bound and a measurement to a verdict; the ledger lists them all."""

from . import topics
from .base import Claim, claim, find_claim, list_claims
from .checks import Check, Context, Measurement, equality, identity, lower, rate, upper
from .files import load_claims
from .ledger_table import Explanation, exit_code, explain, ledger
from .verification import Verification, verify

__all__ = [
    "Check",
    "Claim",
    "Context",
    "Explanation",
    "Measurement",
    "Verification",
    "claim",
    "equality",
    "exit_code",
    "explain",
    "find_claim",
    "identity",
    "ledger",
    "list_claims",
    "load_claims",
    "lower",
    "rate",
    "topics",
    "upper",
    "verify",
]
