"""A symbolic certificate as a file for Coq: what the formulas compute, one lemma a coordinate, and V_+ <= rho V.

Coq checks with real numbers what SymPy found: that each name is its formula, that what is left is the sum of squares,
that pivots and multipliers are positive on the region, and that the inequalities, summed over n coordinates, give the
rate.  ``coqc`` compiles the file; the package does not need it.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from .forms import Decrease, completed_squares
from .proof import Proof, find_proof
from .symbol import Symbol
from .symbols import Symbols

__all__ = ["EXPORTED", "coq"]

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
    return _file(claim, found, symbols, forms)


def _file(claim: str, proof: Proof, symbols: Symbols, forms: dict[str, Decrease]) -> str:
    lines = [HEAD.format(states=proof.states.replace("(*", "( *"), claim=claim)]
    lines += [f"Variables {' '.join(symbols.region.limits)} : R."]
    for name, (low, high) in symbols.region:
        lines.append(f"Hypothesis {name}_low : {_expression(low)} < {name}.")
        if high != "inf":
            lines.append(f"Hypothesis {name}_high : {name} < {_expression(high)}.")
    squares = {label: completed_squares(form.left) for label, form in forms.items()}
    facts = _facts(symbols, [pair for one in squares.values() for pair in one])
    every = dict.fromkeys(_product(part) for one in symbols.divisors for part in _positive_parts(one))
    products = [text for text in every if text not in facts and text != "1"]
    for number, fact in enumerate(facts):
        lines.append(f"Lemma f{number}_ : 0 < {fact}.")
        lines.append(f"Proof. {''.join(f'pose proof f{i}_ as F{i}; ' for i in range(number))}nra. Qed.")
    lines.append("Ltac known := " + "; ".join(f"pose proof f{i}_ as F{i}" for i in range(len(facts))) + ".")
    for number, product in enumerate(products):
        lines.append(f"Lemma p{number}_ : 0 < {product}.")
        lines.append("Proof. known; repeat apply Rmult_lt_0_compat; lra. Qed.")
    lines.append(
        "Ltac all_known := known; " + "; ".join(f"pose proof p{i}_ as P{i}" for i in range(len(products))) + "."
    )
    lines.append(TACTICS)
    for number, one in enumerate(symbols.definitions):
        before = ", ".join(other.name for other in reversed(symbols.definitions[: number + 1]))
        lines.append(f"Definition {one.name} := {_value(one.value)}.")
        left = f"{one.name} * {one.name}" if one.squared else one.name
        lines.append(f"Lemma {one.name}_is : {left} = {_expression(one.formula)}.")
        lines.append(f"Proof. unfold {before}; all_known. field; nonzero. Qed.")
        if one.squared:
            lines += _positive(f"{one.name}_positive", one.name, one.value, [one.name])
    for label, form in forms.items():
        lines += _decrease(_name(label), form, squares[label], symbols)
    return "\n".join([*lines, "End Certificate.", *(f"Check rate_{_name(label)}." for label in forms)]) + "\n"


def _decrease(name: str, form: Decrease, squares, symbols: Symbols) -> Iterable[str]:
    """Definitions, the identity of one coordinate, signs, and the rate of sums over n coordinates."""
    vectors, defined = " ".join(form.vectors), [one.name for one in reversed(symbols.definitions)]
    unfold = f"unfold before_{name}, after_{name}, {', '.join([*(f'{one}_{name}' for one in form.known), *defined])}"
    yield ""
    for part, matrix in (("before", form.before), ("after", form.after), *((n, f) for n, (_, f) in form.known.items())):
        yield f"Definition {part}_{name} ({vectors} : R) := {_quadratic(form.vectors, matrix)}."
    known = " - ".join(f"{_text(weight)} * {one}_{name} {vectors}" for one, (weight, _) in form.known.items())
    left = " + ".join(
        f"{_value(pivot)} * ({_linear(form.vectors, row)}) ^ 2" for pivot, row in squares if isinstance(pivot, Symbol)
    )
    yield f"Lemma one_{name} ({vectors} : R) :"
    yield f"  {_text(form.rate)} * before_{name} {vectors} - after_{name} {vectors} - {known}"
    yield f"  = {left}."
    yield f"Proof. {unfold}; all_known. field; nonzero. Qed."
    for number, (pivot, _) in enumerate((p, r) for p, r in squares if isinstance(p, Symbol)):
        yield from _positive(f"pivot{number}_{name}", _value(pivot), pivot, [])
    weights = {one: weight for one, (weight, _) in form.known.items() if isinstance(weight, Symbol)}
    for one, weight in weights.items():
        yield from _positive(
            f"weight_{one}_{name}", _text(weight), weight, [d.name for d in reversed(symbols.definitions)]
        )
    at = " ".join(f"({vector} i)" for vector in form.vectors)
    yield f"Theorem rate_{name} n ({vectors} : nat -> R) :"
    for one in form.known:
        yield f"  0 <= sum n (fun i => {one}_{name} {at}) ->"
    yield f"  sum n (fun i => after_{name} {at}) <= {_text(form.rate)} * sum n (fun i => before_{name} {at})."
    yield "Proof."
    yield f"  intros {' '.join(f'H_{one}' for one in form.known)}."
    total = " + ".join(
        f"{_text(weight)} * sum n (fun i => {one}_{name} {at})" for one, (weight, _) in form.known.items()
    )
    yield f"  assert (sum n (fun i => after_{name} {at}) + ({total})"
    yield f"          <= {_text(form.rate)} * sum n (fun i => before_{name} {at})) as all."
    yield f"  {{ clear {' '.join(f'H_{one}' for one in form.known)}. induction n as [|n IH]; cbn [sum]; [lra |]."
    here = " ".join(f"({vector} n)" for vector in form.vectors)
    yield f"    pose proof (one_{name} {here}) as E."
    for number, (_, row) in enumerate((p, r) for p, r in squares if isinstance(p, Symbol)):
        term = _linear([f"{vector} n" for vector in form.vectors], row)
        yield f"    pose proof (Rmult_le_pos _ _ (Rlt_le _ _ pivot{number}_{name}) (pow2_ge_0 ({term}))) as S{number}."
    yield "    lra. }"
    for one in weights:
        yield f"  pose proof (Rmult_le_pos _ _ (Rlt_le _ _ weight_{one}_{name}) H_{one}) as W_{one}."
    yield "  lra."
    yield "Qed."


def _positive(name: str, text: str, value: Symbol, unfolded: list[str]) -> list[str]:
    """A lemma that a value is positive: it is a quotient of products of what is."""
    above, below = (_product(part) for part in _positive_parts(value))
    constant = abs(_constant(value))
    quotient = f"({constant} * {above}) / ({below})"
    unfold = f"unfold {', '.join(unfolded)}; " if unfolded else ""
    return [
        f"Lemma {name} : 0 < {text}.",
        f"Proof. {unfold}all_known.",
        f"  assert (0 < {quotient}) as H by positive.",
        f"  replace ({quotient}) with ({text}) in H by ({unfold}field; nonzero); exact H. Qed.",
    ]


def _constant(value: Symbol) -> Fraction:
    """The number before the factors of a value."""
    above, below = (p.factor_list()[0] for p in (value.value.numer, value.value.denom))
    return Fraction(int(above.numerator), int(above.denominator)) / Fraction(
        int(below.numerator), int(below.denominator)
    )


def _positive_parts(value: Symbol) -> list[list[str]]:
    """The factors of numerator and denominator, each with the sign that makes it positive."""
    parts: list[list[str]] = []
    for polynomial in (value.value.numer, value.value.denom):
        parts.append([])
        for factor, power in polynomial.factor_list()[1]:
            sign = value.of.sign(Symbol(value.value.field(factor), 0.0, value.of))
            parts[-1] += [_expression(f"({factor})" if sign == 1 else f"({-factor})")] * power
    return parts


def _product(factors: list[str]) -> str:
    return " * ".join(factors) or "1"


def _facts(symbols: Symbols, squares) -> list[str]:
    """The factors of all values, with the sign that they have on the region."""
    values = [one.value for one in symbols.definitions]
    values += [value for pivot, row in squares for value in (pivot, *row) if isinstance(value, Symbol)]
    found: dict[str, None] = {}
    for value in values:
        for polynomial in (value.value.numer, value.value.denom):
            for factor, _ in polynomial.factor_list()[1]:
                one = Symbol(value.value.field(factor), 0.0, symbols)
                sign = symbols.sign(one)
                if sign:
                    found[_expression(f"({factor})" if sign > 0 else f"({-factor})")] = None
    return sorted(found, key=len)


def _name(label: str) -> str:
    return "".join(one for one in label.title() if one.isalnum()) if " " in label else label


def _expression(text: str) -> str:
    return text.replace("**", " ^ ")


def _value(value) -> str:
    """A value written out, factored."""
    return f"({_expression(str(value))})" if isinstance(value, Symbol) else str(value)


def _text(value) -> str:
    """How a value was computed."""
    return _expression(value.text) if isinstance(value, Symbol) else str(value)


def _linear(vectors, row) -> str:
    terms = [f"{_value(value)} * {_variable(v)}" for v, value in zip(vectors, row, strict=True) if _there(value)]
    return " + ".join(terms)


def _variable(vector: str) -> str:
    return f"({vector})" if " " in vector else vector


def _there(value) -> bool:
    return not value.vanishes() if isinstance(value, Symbol) else bool(value)


def _quadratic(vectors, matrix) -> str:
    terms = []
    for i, one in enumerate(vectors):
        for j, other in enumerate(vectors):
            if _there(matrix[i, j]):
                value = matrix[i, j]
                terms.append(f"{_text(value) if isinstance(value, Symbol) else f'({value})'} * ({one} * {other})")
    return " + ".join(terms)
