"""A symbolic certificate as a file for Coq: what the formulas compute, one lemma a coordinate, and V_+ <= rho V.

Coq checks with real numbers what SymPy found: that each name is its formula, that what is left is the sum of squares,
that pivots and multipliers are positive on the region, and that the inequalities, summed over n coordinates, give the
rate.  ``coqc`` compiles the file; the package does not need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from .proof_list import Decrease, completed_squares, find_proof, is_zero
from .symbols import Symbol, Symbols

EXPORTED = ("ef.exact", "ef.exact.certificate")  # the claims whose file a test gives to Coq

HEAD = """(* {states}.
   Made by: python -m theory.experiment certificate {claim} --coq *)
Require Import Reals Lra Psatz.
Open Scope R_scope.

Fixpoint sum (n : nat) (f : nat -> R) := match n with O => 0 | S k => sum k f + f k end.

Section Certificate.
"""
TACTICS = """
Ltac nonzero := intros; repeat split; first [lra | nra | (apply Rgt_not_eq; nra) | (apply Rlt_not_eq; nra)].
Ltac positive := first [assumption | lra | apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra].
"""


def coq(claim: str) -> str:
    """The certificate of the exact rates of error feedback and of EF21, for Coq.

    Parameters
    ----------
    claim : str
        One of `EXPORTED`.

    Returns
    -------
    str
        A file for ``coqc``.

    Raises
    ------
    ValueError
        If it is another claim.

    Examples
    --------
    >>> print(coq("ef.exact").splitlines()[-1])
    Check rate_EF21.
    """
    if claim not in EXPORTED:
        raise ValueError(f"claim: got {claim!r}, allowed: {', '.join(EXPORTED)}")
    found = find_proof("ef.exact.certificate")
    assert found is not None
    symbols = Symbols(found.region[0], traced=True)
    forms = {one.label: one.value[0] for one in found.prove(symbols) if one.kind == "squares"}
    squares = {label: completed_squares(form.left) for label, form in forms.items()}
    lines = [HEAD.format(states=found.states.replace("(*", "( *"), claim=claim)]
    lines += [f"Variables {' '.join(symbols.region.limits)} : R."]
    for name, (low, high) in symbols.region:
        lines += [f"Hypothesis {name}_low : {_power(low)} < {name}."]
        lines += [f"Hypothesis {name}_high : {name} < {_power(high)}."] if high != "inf" else []
    lines += [*_signs(symbols, squares.values()), TACTICS]
    for number, one in enumerate(symbols.definitions):
        unfold = ", ".join(other.name for other in reversed(symbols.definitions[: number + 1]))
        left, right = f"{one.name} * {one.name}" if one.squared else one.name, _power(one.formula)
        lines += [f"Definition {one.name} := {_value(one.value)}."]
        lines += [_lemma(f"{one.name}_is : {left} = {right}", f"unfold {unfold}; all_known. field; nonzero.")]
        lines += [_positive(f"{one.name}_positive", one.name, one.value, f"unfold {one.name}; ")] if one.squared else []
    for label, form in forms.items():
        pairs = [(pivot, row) for pivot, row in squares[label] if isinstance(pivot, Symbol)]
        lines += ["", *_decrease(_name(label), form, pairs, symbols)]
    return "\n".join([*lines, "End Certificate.", *(f"Check rate_{_name(label)}." for label in forms)]) + "\n"


def _lemma(says: str, proof: str) -> str:
    return f"Lemma {says}.\nProof. {proof} Qed."


def _signs(symbols: Symbols, squares: Iterable) -> Iterator[str]:
    """Lemmas that the factors of all values, and the products that are divided by, are positive on the region."""
    values = [one.value for one in symbols.definitions]
    values += [one for pairs in squares for pivot, row in pairs for one in (pivot, *row) if isinstance(one, Symbol)]
    facts = sorted(dict.fromkeys(text for one in values for part in _factors(one) for text in part), key=len)
    every = dict.fromkeys(" * ".join(part) for one in symbols.divisors for part in _factors(one) if part)
    products = [text for text in every if text not in facts]
    for number, fact in enumerate(facts):
        yield _lemma(f"f{number}_ : 0 < {fact}", f"{_recall('f', number)}nra.")
    yield f"Ltac known := {_recall('f', len(facts))[:-2]}."
    for number, product in enumerate(products):
        yield _lemma(f"p{number}_ : 0 < {product}", "known; repeat apply Rmult_lt_0_compat; lra.")
    yield f"Ltac all_known := known; {_recall('p', len(products))[:-2]}."


def _recall(letter: str, count: int) -> str:
    return "".join(f"pose proof {letter}{i}_ as {letter.upper()}{i}; " for i in range(count))


def _decrease(name: str, form: Decrease, squares: list, symbols: Symbols) -> Iterator[str]:
    """Definitions, the identity of one coordinate, signs, and the rate of sums over n coordinates."""
    vectors, unfold = " ".join(form.vectors), ", ".join(one.name for one in reversed(symbols.definitions))
    matrices = {"before": form.before, "after": form.after} | {one: found for one, (_, found) in form.known.items()}
    weights, rate = {one: weight for one, (weight, _) in form.known.items()}, _text(form.rate)
    for part, matrix in matrices.items():
        yield f"Definition {part}_{name} ({vectors} : R) := {_quadratic(form.vectors, matrix)}."
    less = [f"after_{name} {vectors}"] + [f"{_text(w)} * {one}_{name} {vectors}" for one, w in weights.items()]
    left = " + ".join(f"{_value(pivot)} * ({_linear(form.vectors, row)}) ^ 2" for pivot, row in squares)
    unfolded = ", ".join([*(f"{one}_{name}" for one in matrices), unfold])
    says = f"one_{name} ({vectors} : R) :\n  {rate} * before_{name} {vectors} - {' - '.join(less)}\n  = {left}"
    yield _lemma(says, f"unfold {unfolded}; all_known. field; nonzero.")
    yield from (_positive(f"pivot{i}_{name}", _value(pivot), pivot) for i, (pivot, _) in enumerate(squares))
    symbolic = [(one, weight) for one, weight in weights.items() if isinstance(weight, Symbol)]
    for one, weight in symbolic:
        yield _positive(f"weight_{one}_{name}", _text(weight), weight, f"unfold {unfold}; ")
    at, here = ([f"({vector} {index})" for vector in form.vectors] for index in "in")
    hypotheses = " ".join(f"H_{one}" for one in weights)
    total = {one: f"sum n (fun i => {one}_{name} {' '.join(at)})" for one in matrices}
    added = " + ".join(f"{_text(weight)} * {total[one]}" for one, weight in weights.items())
    assumed = "".join(f"\n  0 <= {total[one]} ->" for one in weights)
    yield f"Theorem rate_{name} n ({vectors} : nat -> R) :{assumed}\n  {total['after']} <= {rate} * {total['before']}."
    yield f"Proof.\n  intros {hypotheses}."
    yield f"  assert ({total['after']} + ({added})\n          <= {rate} * {total['before']}) as all."
    yield f"  {{ clear {hypotheses}. induction n as [|n IH]; cbn [sum]; [lra |]."
    yield f"    pose proof (one_{name} {' '.join(here)}) as E."
    for i, (_, row) in enumerate(squares):
        square = f"(pow2_ge_0 ({_linear(here, row)}))"
        yield f"    pose proof (Rmult_le_pos _ _ (Rlt_le _ _ pivot{i}_{name}) {square}) as S{i}."
    terms = [f"(Rmult_le_pos _ _ (Rlt_le _ _ weight_{one}_{name}) H_{one}) as W_{one}." for one, _ in symbolic]
    yield "\n  ".join(["    lra. }", *(f"pose proof {term}" for term in terms), "lra.\nQed."])


def _positive(name: str, text: str, value: Symbol, unfold: str = "") -> str:
    """A lemma that a value is positive: it is a quotient of products of what is."""
    above, below = (" * ".join(part) or "1" for part in _factors(value))
    numbers = [Fraction(str(p.factor_list()[0])) for p in (value.value.numer, value.value.denom)]
    quotient = f"({abs(numbers[0] / numbers[1])} * {above}) / ({below})"
    proof = f"{unfold}all_known.\n  assert (0 < {quotient}) as H by positive.\n"
    proof += f"  replace ({quotient}) with ({text}) in H by ({unfold}field; nonzero); exact H."
    return _lemma(f"{name} : 0 < {text}", proof)


def _factors(value: Symbol) -> tuple[list[str], list[str]]:
    """The factors of numerator and denominator, each with the sign that makes it positive on the region."""
    above, below = list[str](), list[str]()
    for part, polynomial in ((above, value.value.numer), (below, value.value.denom)):
        for factor, power in polynomial.factor_list()[1]:
            sign = value.of.sign(Symbol(value.value.field(factor), 0.0, value.of))
            part += [_power(f"({factor if sign == 1 else -factor})")] * power
    return above, below


def _name(label: str) -> str:
    return "".join(one for one in label.title() if one.isalnum()) if " " in label else label


def _power(text: str) -> str:
    return text.replace("**", " ^ ")


def _value(value: object) -> str:
    """A value written out, factored."""
    return f"({_power(str(value))})" if isinstance(value, Symbol) else str(value)


def _text(value: object) -> str:
    """How a value was computed."""
    return _power(value.text) if isinstance(value, Symbol) else str(value)


def _linear(vectors: Sequence[str], row: list) -> str:
    return " + ".join(f"{_value(one)} * {v}" for v, one in zip(vectors, row, strict=True) if not is_zero(one))


def _quadratic(vectors: Sequence[str], matrix: np.ndarray) -> str:
    entries = [(one, f"({vectors[i]} * {vectors[j]})") for (i, j), one in np.ndenumerate(matrix) if not is_zero(one)]
    return " + ".join(f"{_text(one) if isinstance(one, Symbol) else f'({one})'} * {both}" for one, both in entries)
