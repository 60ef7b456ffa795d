"""Proofs for all parameters, of claims: identities, sums of squares and signs, decided exactly by SymPy."""

from .execute import Change, Formulas, Unproved
from .forms import between, dot, pivots, square, unit_forms
from .proof_list import (
    Checked,
    Obligation,
    Proof,
    certificate,
    check,
    find_proof,
    list_proofs,
    nonnegative,
    positive,
    proof,
    squares,
    zero,
)
from .region import Region
from .symbol import Symbol
from .symbols import Symbols
