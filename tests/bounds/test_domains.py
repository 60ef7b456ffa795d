"""Domains of formulas: what a condition says, what it lets through, and what the record of a theorem takes from it."""

import inspect
import math

import numpy as np
import pytest
from numpy.typing import ArrayLike

import theory as th
from theory import bounds
from theory.bounds.bibliography import cited, entries, fields, keys, source_known
from theory.bounds.closed_form import formula, parts, theorem
from theory.bounds.domains import condition, domain


@pytest.mark.parametrize(
    "text, subject, integer, said",
    [
        ("0 < delta <= 1", "delta", False, "a number in (0, 1]"),
        ("d >= 1", "d", True, "an integer, at least 1"),
        ("1 <= k <= d", "k", True, "an integer from 1 to d = 8"),
        ("k <= d", "k", True, "an integer, at most d = 8"),
        ("step < 2 / mu", "step", False, "a number below 2 / mu = 4"),
        ("2 > alpha", "alpha", False, "a number below 2"),
        ("alpha != 1", "alpha", False, "a number that is not 1"),
        ("form in ('sharp', 'paper', 'simple')", "form", False, "'sharp', 'paper' or 'simple'"),
        ("norm in (2, inf)", "norm", False, "2 or inf"),
        ("step * mu < 2", "step", False, "a number such that step * mu < 2"),
        ("one of rate, shape", "rate", False, "exactly one of rate and shape"),
    ],
)
def test_a_condition_names_its_subject_and_says_what_is_allowed(text, subject, integer, said):
    one = condition(text)
    assert one.subject == subject and one.said(integer, {"d": 8, "mu": 0.5}) == said


def test_a_computed_limit_may_be_missed_by_rounding_and_a_number_may_not():
    third = condition("step <= 1 / lipschitz")
    assert third.holds({"step": (1 + 1e-13) / 3.0, "lipschitz": 3.0})
    assert not third.holds({"step": (1 + 1e-9) / 3.0, "lipschitz": 3.0})
    assert not condition("p <= 1").holds({"p": 1.0 + 1e-13})
    assert not condition("step < 1 / lipschitz").holds({"step": 1.0, "lipschitz": 1.0})


def test_arrays_hold_everywhere_and_nan_nowhere():
    above = condition("x > 0")
    assert above.holds({"x": np.array([1.0, 2.0])}) and not above.holds({"x": np.array([1.0, 0.0])})
    assert not above.holds({"x": math.nan}) and not condition("x <= 0").holds({"x": math.nan})


@formula("weights >= 0", "some(weights)", "count(weights) == count(levels)", "increasing(levels)", "power_of_two(n)")
def weighted(weights: ArrayLike, levels: ArrayLike, n: int = 4) -> float:
    """The weighted mean of levels.

    weights: Of the levels.
    """
    return float(np.average(levels, weights=weights))


@pytest.mark.parametrize(
    "given, message",
    [
        (([1.0, -1.0], [0.0, 1.0]), r"weights: got \[1.0, -1.0\], allowed: numbers, at least 0"),
        (([0.0, 0.0], [0.0, 1.0]), "weights: got .*, allowed: numbers, not all 0"),
        (([1.0], [0.0, 1.0]), r"weights: got \[1.0\], allowed: numbers such that count\(weights\) == count\(levels\)"),
        (([1.0, math.inf], [0.0, 1.0]), "weights: got .*, allowed: finite numbers"),
        ((["a", 1.0], [0.0, 1.0]), "weights: got .*, allowed: finite numbers"),
        (([1.0, 1.0], [1.0, 0.0]), "levels: got .*, allowed: increasing numbers"),
        (([1.0, 1.0], [0.0, 1.0], 6), "n: got 6, allowed: a power of two"),
    ],
)
def test_an_array_outside_the_domain_is_named(given, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        weighted(*given)


def test_what_numpy_makes_an_array_of_passes():
    for kind in (list, tuple, np.array, np.float32):
        assert weighted(kind([1, 3]), [0, 1]) == 0.75
    assert "weights : array_like\n    Of the levels, at least 0; not all 0; such that count" in weighted.__doc__


@formula("0 < k <= d", "form in ('sharp', 'paper')", "alpha > 4")
def kept(d: int, k: float, mu: float = 1.0, alpha: float | None = None, form: str = "sharp") -> float:
    r"""Share that is kept.

    Setting: any v.
    Statement (sharp): the share is k/d.
    Statement (paper): the share is at least k/(2 d).
    Kind (sharp): identity.
    Kind (paper): lower.
    Latex (sharp): \frac kd
    Source (sharp): derived; sharpens [alistarh2017qsgd], Lemma 3.1.
    Source (paper): [alistarh2017qsgd], Lemma 3.1.
    k: Entries.

    >>> kept(4, 2)
    0.5
    """
    return k / d if form == "sharp" else k / d / 2


@pytest.mark.parametrize(
    "given, message",
    [
        ({"d": 4.5, "k": 1}, "d: got 4.5, allowed: an integer, at least 1"),
        ({"d": 0, "k": 1}, "d: got 0, allowed: an integer, at least 1"),
        ({"d": "4", "k": 1}, "d: got '4', allowed: an integer, at least 1"),
        ({"d": 4, "k": None}, r"k: got None, allowed: a number in \(0, d\]"),
        ({"d": 4, "k": 5}, r"k: got 5, allowed: a number in \(0, d = 4\]"),
        ({"d": 4, "k": math.nan}, "k: got nan, allowed: a finite number"),
        ({"d": 4, "k": math.inf}, "k: got inf, allowed: a finite number"),
        ({"d": 4, "k": 2, "mu": 0.0}, "mu: got 0.0, allowed: a number above 0"),  # of the table of symbols
        ({"d": 4, "k": 2, "alpha": 4}, "alpha: got 4, allowed: a number above 4"),
        ({"d": 4, "k": 2, "form": "blunt"}, "form: got 'blunt', allowed: 'sharp' or 'paper'"),
    ],
)
def test_an_argument_outside_the_domain_is_named(given, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        kept(**given)


def test_inside_the_domain_all_kinds_of_numbers_pass():
    for d, k in ((4, 2), (4.0, 2.0), (np.int64(4), np.float64(2)), (np.array(4), np.array(2.0))):
        assert kept(d, k) == 0.5
    assert kept(4, 2, alpha=None) == 0.5 and kept(4, 2, alpha=5) == 0.5


def test_a_wrong_call_is_pythons_own_error():
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'k'"):
        kept(4)
    with pytest.raises(TypeError, match="unexpected keyword argument 'kappa'"):
        kept(4, 2, kappa=1)
    with pytest.raises(TypeError, match="about none of its arguments"):
        formula("x > 0")(lambda y: y)


def test_the_record_has_a_part_for_each_form():
    assert parts(kept) == ["sharp", "paper"]
    sharp, paper = theorem(kept), theorem(kept, "paper")
    assert (sharp.part, sharp.kind, paper.kind) == ("sharp", "identity", "lower")
    assert sharp.latex == r"\frac kd" and paper.latex == "" and paper.setting == "any v."
    assert sharp.title == paper.title == "Share that is kept"
    with pytest.raises(ValueError, match=r"^part: got 'blunt', allowed: 'sharp', 'paper'"):
        theorem(kept, "blunt")


def test_the_docstring_says_the_domain_and_the_meaning_once():
    text = inspect.getdoc(kept)
    assert "d : int\n    Dimension, at least 1.\n" in text  # of the table of symbols
    assert "k : float\n    Entries, in (0, d].\n" in text
    assert "form : str\n    'sharp' or 'paper'.\n" in text
    assert text.count("Raises\n------\nValueError") == 1


def test_the_docstring_has_one_table_of_its_variants_below_what_they_share():
    text = inspect.getdoc(kept)
    assert text.index("Setting: any v.") < text.index(".. list-table::") < text.index("Parameters\n")
    assert "   * - variant\n     - statement\n     - formula\n     - kind\n     - source\n" in text
    assert "   * - ``sharp``\n     - the share is k/d.\n     - :math:`\\frac kd`\n     - identity.\n" in text
    assert "   * - ``paper``\n     - the share is at least k/(2 d).\n     -\n     - lower.\n" in text
    assert "(sharp)" not in text and "list-table" not in weighted.__doc__


def test_the_bibliography_has_what_a_reference_needs():
    for key in entries():
        entry = fields(key)
        assert {"author", "title", "year", "shorthand", "known"} <= set(entry), key
        assert entry["known"] in ("read", "quoted", "remembered"), key
        assert "doi" in entry and entry["doi"].startswith("10."), key
        assert "shorthand" not in entries()[key] and "known " not in entries()[key], key
    assert keys("derived; [alistarh2017qsgd] and [b]") == ["alistarh2017qsgd"]
    assert cited("[horvath2022natural], Theorem 7").startswith("Horvath, Ho, ")
    assert source_known("derived; sharpens [alistarh2017qsgd]") == "derived"


def test_every_condition_that_a_formula_is_given_is_checked():
    def area(shape: float, largest: float) -> float:
        return shape * largest

    checked = domain(area, ["shape > 0", "0 <= largest <= shape"])
    texts = [one.text for argument in checked.arguments for one in argument.conditions]
    assert sorted(texts) == ["0 <= largest <= shape", "abs(largest) < inf", "abs(shape) < inf", "shape > 0"]
    with pytest.raises(TypeError, match="names an argument"):
        domain(area, ["1 < 2"])


ON = {"local_sgd_nonconvex"}  # they hand the word on to the formula that they call


def test_an_argument_that_is_a_word_has_its_words_in_the_domain():
    formulas = {name: getattr(bounds, name) for name in bounds.__all__}
    words = {
        (name, one.name): [word for each in one.conditions for word in each.words]
        for name, of in formulas.items()
        for one in (of.domain.arguments if inspect.isfunction(of) else ())
        if one.kind.startswith("str")
    }
    assert {name for (name, _), some in words.items() if not some} == ON
    assert len(words) >= 60


EXAMPLES = {"int": 2, "float": 0.5}


def test_beside_an_array_a_number_is_one_number():
    """What a formula computes of an array it sums: an array in the place of a number would be summed in silence."""
    tried = 0
    for one_of in (getattr(bounds, name) for name in bounds.__all__):
        if not inspect.isfunction(one_of) or not any(one.array for one in one_of.domain.arguments):
            continue
        arguments = {one.name: one for one in one_of.domain.arguments}
        wanted = [n for n, p in one_of.domain.signature.parameters.items() if p.default is p.empty]
        given = {n: [0.25, 0.5] if arguments[n].array else EXAMPLES.get(arguments[n].kind, 0.5) for n in wanted}
        for one in arguments.values():
            if one.number:
                with pytest.raises(ValueError, match=rf"^{one.name}: got array\(\[1, 2\]\), allowed: "):
                    one_of(**(given | {one.name: np.array([1, 2])}))
                tried += 1
    assert tried > 60


def test_formulas_of_numbers_alone_still_take_arrays():
    assert np.allclose(bounds.top_k_contraction(np.array([4, 8]), 2), [0.5, 0.25])


def test_a_misspelt_name_has_its_neighbour():
    for module, name, near in ((bounds, "qsgd_varianc", "qsgd_variance"), (th, "ParalelSGD", "ParallelSGD")):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; did you mean {near}?"):
            getattr(module, name)
        assert not hasattr(module, "nothing_like_it_at_all")
