"""Claims: a statement, its source, its bound and a measurement lead to a verdict; the ledger lists all claims."""

from ..bounds.bibliography import source_known
from ..bounds.closed_form import formula
from .base import Claim, claim, find_claim, list_claims
from .checks import Check, Context, assumption, certain, equality, identity, limit, lower, rate, upper
from .files import load_claims
from .grading import Grade, grade
from .judgement import passing_factor
from .ledger_table import Explanation, exit_code, explain, ledger, resolution
from .tables import ClaimTable, Verifications, browse
from .tables import make_callable as _make_callable
from .verification import Verification, verify

__all__ = sorted(name for name, value in globals().items() if name[0] != "_" and hasattr(value, "__module__"))

_make_callable(__name__)  # th.claims("qsgd")
