"""Proofs for all parameters, of claims: identities, sums of squares and signs, decided exactly by SymPy."""

from .execute import Change, Formulas, Unproved
from .proof_list import (
    Checked,
    Obligation,
    Proof,
    between,
    certificate,
    check,
    dot,
    find_proof,
    list_proofs,
    nonnegative,
    pivots,
    positive,
    proof,
    square,
    squares,
    unit_forms,
    zero,
)
from .symbols import Region, Symbol, Symbols
