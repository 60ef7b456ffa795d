"""Exercises that are graded: the lectures' own solutions pass, and typical mistakes are caught and named."""

from __future__ import annotations

import ast
import functools
import itertools
import math
import re

import numpy as np
import pytest
from conftest import ROOT
from test_grading import qsgd, rand_k, scaled_sign, terngrad, top_k

import theory as th
from theory.claims.exercises import EXERCISES
from theory.methods.schedules import step_size

LECTURES = sorted((ROOT / "notebooks").glob("[0-9][0-9]-*.md"))
CELL = re.compile(r"```\{code-cell\} ipython3\n:tags: \[solution, hide-cell\]\n\n(.*?)```", re.DOTALL)
GRADED_BY_A_CLAIM = {"my_qsgd", "my_nuqsgd", "my_top", "my_sign", "my_rand"}
NOT_GRADED = {  # with what the exercise leaves open
    "star": "any schedule that sends as many messages",
    "best": "the best share, to any grid",
    "worst": "any multiple, order and signs",
    "best_two": "one number for the lecture's vector, to a grid",
    "read_omega": "reads a text",
    "read_levels": "reads the lecture's message",
    "window": "searches thousands of dimensions",
    "crossing": "a number without arguments",
    "fewest": "searches with the package's compressors",
    "exact": "the lecture compares bits of float32",
    "bits_until": "reads a record of a run",
    "whole": "reads folders",
    "blind": "any vectors that blind the test",
    "replaced": "a claim of its own measures it",
    "draws": "a pilot, from the lecture's functions",
    "dealt": "a list in any order",
    "heard": "reads the lecture's graphs",
    "chords": "any graph with the gap",
    "first_ring": "a number without arguments",
    "ends": "the lecture compares two runs",
    "found_outer": "searches with the lecture's runs",
    "ef_floor": "runs on the lecture's problem",
    "blend_for": "the lecture compares it with a formula",
    "pays_from": "compares two formulas of the package",
    "my_perm": "random: the lecture compares its mean error",
    "my_orthogonal": "the lecture compares it with a decomposition",
    "my_factor": "the lecture compares it with a run",
}

# second questions of exercises whose first is graded, and what is wrong on purpose
SECOND = {"left", "more", "twice", "waited", "until", "product", "least_upper", "one_number", "nearest"}


def solutions():
    """The solution cells of the lectures, with the lecture's number."""
    return [(path.name[:2], cell) for path in LECTURES for cell in CELL.findall(path.read_text(encoding="utf-8"))]


def defined(cell):
    """Names of the functions of a cell."""
    return [node.name for node in ast.parse(cell).body if isinstance(node, ast.FunctionDef)]


def run(cell):
    """What a cell defines, with what its lecture had before; what needs more fails in its last lines only."""
    space = {
        "step_size": step_size,
        "np": np,
        "th": th,
        "math": math,
        "itertools": itertools,
        "MU": 0.5,
        "SIGMA2": 2.0,
        "gamma": 0.1,
    }
    a, c = np.array([2.0, 1.0, 0.5]), np.array([2.0, 1.5, -1.0])
    space |= {"curvatures": a**2, "minimisers": c / a, "require": lambda *args: None}
    for node in ast.parse(cell).body:
        if isinstance(node, ast.FunctionDef):
            exec(compile(ast.Module([node], []), "solution", "exec"), space)
    return space


def test_every_function_of_a_solution_is_graded_or_says_why_not():
    names = {(number, name) for number, cell in solutions() for name in defined(cell)}
    assert len(names) > 60
    graded = {tuple(id.split(".")) for id in EXERCISES if id[0].isdigit()}
    assert graded <= names
    assert {name for _, name in names - graded} == GRADED_BY_A_CLAIM | set(NOT_GRADED) | SECOND


@pytest.mark.parametrize("number, cell", solutions())
def test_the_solutions_of_the_lectures_pass(number, cell):
    space = run(cell)
    for name in defined(cell):
        if f"{number}.{name}" in EXERCISES:
            found = th.grade(space[name], f"{number}.{name}")
            assert found and "passed" in str(found), found


def test_the_page_lists_what_can_be_graded():
    page = (ROOT / "docs" / "teach.md").read_text(encoding="utf-8")
    for id in EXERCISES:
        number, _, name = id.rpartition(".")
        assert f"`{id}`" in page or re.search(rf"\| {number} \|.*`{name}`", page), id


# --- rounds and numbers: mistakes -------------------------------------------------------------------------------------


def changed(right, change):
    """An answer whose results are changed."""
    return functools.wraps(right)(lambda *args: each(change, right(*args)))


def each(change, found):
    return tuple(change(np.asarray(one, float)) for one in found) if isinstance(found, tuple) else change(found)


MISTAKES = {
    "is `return` missing": lambda y: None,
    "has the wrong sign": lambda y: -np.asarray(y, float),
    "is 2 times": lambda y: 2 * np.asarray(y, float),
    "is 1/2 times|is 4 times": lambda y: np.asarray(y, float) / 2,
    "is one too large|is 1 minus": lambda y: np.asarray(y, float) + 1,
    "square|is 2 times|is 4 times|is [a-zA-Z]+ times": lambda y: np.asarray(y, float) ** 2,
    "has shape": lambda y: np.append(np.asarray(y, float), [1.0, 2.0]),
    "is nan": lambda y: np.asarray(y, float) * np.nan,
}
WORDS = {"08.better"}  # its answer is a name


@pytest.mark.parametrize("id", EXERCISES)
def test_usual_mistakes_of_a_round_or_a_number_are_named(id):
    exercise = EXERCISES[id]
    assert th.grade(exercise.right, id)
    for words, change in MISTAKES.items():
        if id in WORDS and "return" not in words:
            continue
        several = len(exercise.parts) > 1 and "return" not in words
        mine = changed(exercise.right, change) if several else (lambda *args, c=change: c(exercise.right(*args)))
        found = th.grade(mine, id)
        assert not found, (words, found)
        said = "; ".join(found.faults)  # a coincidence, such as 1/4 = (1/2)^2, may have another name
        assert re.search(f"{words}| not ", said), (words, found)

    def raises(*args):
        return np.linalg.nrm(args)

    assert "raises AttributeError" in th.grade(raises, id).faults[0]


def remember(x, e, gradient, eta, k, *, into=True, keep=True, sent=top_k, sign=1.0, inside=True):
    """Error feedback with one line wrong."""
    p = (e if into else 0.0) + (eta if inside else 1.0) * gradient
    message = sent(p, k)
    return x - sign * (1.0 if inside else eta) * message, (p - message if keep else e)


def in_place(x, e, gradient, eta, k):
    e += eta * gradient
    message = top_k(e, k)
    x -= message
    e -= message
    return x, e


FEEDBACK = {
    "the memory is not added": (dict(into=False), "the new x"),
    "the memory is not stored": (dict(keep=False), "the new memory is the argument e, unchanged"),
    "a step uphill": (dict(sign=-1.0), "the new x"),
    "the step size outside": (dict(inside=False), "the new x"),
    "one coordinate fewer": (dict(sent=lambda p, k: top_k(p, k - 1)), "the new x"),
    "largest with their signs": (dict(sent=lambda p, k: p * (p >= np.sort(p)[-k])), "the new x"),
    "everything is sent": (dict(sent=lambda p, k: p), "the new memory is zero"),
}


@pytest.mark.parametrize("name", FEEDBACK)
def test_mistakes_of_a_step_with_memory_are_named(name):
    wrong, words = FEEDBACK[name]
    found = th.grade(lambda x, e, g, eta, k: remember(x, e, g, eta, k, **wrong), "ef.identity")
    assert not found and any(words in fault for fault in found.faults), found


def test_other_mistakes_of_a_step_with_memory_are_named():
    assert "it changes its argument" in th.grade(in_place, "ef.identity").faults[0]
    found = th.grade(lambda *args: remember(*args)[0], "ef.identity")
    assert "it returns ndarray, not 2 values: the new x, the new memory" in found.faults[0]
    swapped = th.grade(lambda *args: remember(*args)[::-1], "ef.identity")
    assert swapped.faults == ("the values are right, but in another order: return the new x, the new memory",)
    assert th.grade(lambda *args: list(remember(*args)), "ef.identity")  # a list will do


def local(x, gradients, eta, H, *, at_start=False, total=False, first=False, more=0, scaled=False):
    """A round of local SGD with one line wrong."""
    ends = []
    for gradient in gradients:
        y = np.array(x, float)
        for _ in range(H + more):
            y = y - (eta / H if scaled else eta) * gradient(x if at_start else y)
        ends.append(y)
    return ends[0] if first else sum(ends) if total else sum(ends) / len(ends)


@pytest.mark.parametrize(
    "wrong",
    [{"at_start": True}, {"total": True}, {"first": True}, {"more": 1}, {"more": -1}, {"scaled": True}],
    ids=str,
)
def test_mistakes_of_a_round_of_local_sgd_are_caught(wrong):
    found = th.grade(lambda *args: local(*args, **wrong), "local-sgd.average")
    assert not found and found.faults[0].startswith("the new x"), found
    assert th.grade(local, "local-sgd.average")


def test_right_numbers_pass_in_other_forms_and_types():
    assert th.grade(lambda n, S2, E: np.float32(1 / (1 / n + E / S2)), "09.rows")
    assert th.grade(lambda n, S2, E: np.ceil(n * S2 / (S2 + n * E)), "09.rows")
    assert th.grade(lambda share, B_D: math.ceil(share * (B_D - 1) / (1 - share)), "02.enough")
    assert th.grade(lambda rank, ranks, workers: np.arange(workers).reshape(ranks, -1)[rank], "10.hosts")
    assert th.grade(lambda rank, ranks, workers: range(*(np.array([rank, rank + 1]) * workers // ranks)), "10.hosts")
    assert th.grade(lambda v: (v.astype(np.float32) ** 2).sum() * v.size / np.abs(v).sum() ** 2, "04.saving")


def test_a_number_that_is_right_in_some_cases_is_said_to_be():
    def finite(beta1, beta2):
        return (1 - beta1) / math.sqrt(abs((1 - beta2) * (1 - beta1**2 / beta2)))

    def squared(T, N, mu, L, ratio):
        return L**2 * math.sqrt(ratio * mu * T / (64 * L * N))

    found = th.grade(finite, "13.limit")
    assert "not inf, for beta1 = 0.9, beta2 = 0.8; it is right in 3 of 4 cases" in found.faults[0]
    assert "is L^2 times" in th.grade(squared, "09.largest").faults[0]


@pytest.mark.parametrize(
    ("id", "answer", "words"),
    [
        ("07.drift", lambda: (-0.5, 0.25), "another order: return the mean gradient, the mean sign"),
        ("07.drift", lambda: (3.0, 0.0), "the mean gradient is 3, not 0.25$"),  # one pair of numbers: no guesses
        ("07.waiting", lambda p: ((1 - p) / p) ** 2, "the square of the mean"),
        ("07.walk", lambda gradients: -gradients.astype(complex).sum(), "is complex"),
        ("02.enough", lambda share, B_D: share * B_D, "the speed-up to be reached"),
        ("11.replaced_variance", lambda d, k: (d - k) / k, "without replacement"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_usual_mistakes_are_named(id, answer, words):
    found = th.grade(answer, id)
    assert not found and len(found.faults) <= 2 and re.search(words, found.faults[0]), found


@pytest.mark.parametrize("id", [id for id, exercise in EXERCISES.items() if exercise.mistakes])
def test_no_right_answer_is_taken_for_a_usual_mistake(id):
    exercise = EXERCISES[id]
    assert th.grade(exercise.right, id)
    for words, mistake in exercise.mistakes.items():
        assert th.grade(mistake, id).faults == (words,)


def test_what_a_lecture_accepts_is_graded_as_right():
    def outside(c, gradients, gammas):  # messages in float32, the default of th.compress
        x, e = np.zeros(gradients.shape[1]), np.zeros(gradients.shape[1])
        for g, gamma in zip(gradients, gammas, strict=True):
            sent = th.compress(c, g + e, 0)
            x, e = x - gamma * sent, g + e - sent
        return x, e

    assert th.grade(outside, "07.outside")
    assert th.grade(lambda *given: np.array(outside(*given)), "07.outside")
    assert th.grade(lambda: np.array([0.25, -0.5]), "07.drift")


def test_what_is_no_exercise_is_refused():
    for id in ("09.row", "9.rows", "rows"):
        with pytest.raises(ValueError, match=rf"id: got '{re.escape(id)}', allowed: .* an exercise such as .*09\.rows"):
            th.grade(len, id)
    with pytest.raises(TypeError, match="compressor: got 3, allowed: a function"):
        th.grade(3, "09.rows")
    assert "the value is log(2) times" in th.grade(lambda N: np.log(2 * N + 1), "04.down").faults[0]


# --- compressors: mistakes --------------------------------------------------------------------------------------------


def nuqsgd(v, rng, s, ratio):
    norm = np.linalg.norm(v)
    if norm == 0:
        return np.zeros(v.size)
    levels = np.append(0.0, ratio ** np.arange(s, -1.0, -1.0))
    r = np.minimum(np.abs(v) / norm, 1.0)
    below = np.clip(np.searchsorted(levels, r, side="right") - 1, 0, s)
    chance = (r - levels[below]) / (levels[below + 1] - levels[below])
    return norm * np.sign(v) * levels[below + (rng.random(v.size) < chance)]


def norm(v):
    return np.linalg.norm(v)


def spoil(v, found):
    v *= 2.0
    return found


COMPRESSORS = {
    "qsgd.variance": qsgd,
    "qsgd.nonzeros": qsgd,
    "nuqsgd.variance": nuqsgd,
    "randk.variance": rand_k,
    "randk.unbiased": rand_k,
    "topk.contraction": top_k,
    "sign.error": scaled_sign,
    "terngrad.variance": terngrad,
}
USUAL = {
    "returns nothing": (lambda f, v: None, "is `return` missing"),
    "changes v": (lambda f, v: spoil(v, f(v)), "changes v itself"),
    "whole numbers": (lambda f, v: (3.0 * f(v)).astype(int), "array of int64"),
    "a single number": (lambda f, v: f(v).sum(), "shape"),
    "the signs are lost": (lambda f, v: np.abs(f(v)), "signs"),
    "twice": (lambda f, v: 2.0 * f(v), "2 times"),
    "the norm is not restored": (lambda f, v: f(v) / max(norm(v), 1e-300), r"1/\|\|v\|\||does not grow with v"),
    "a constant beside the norm": (lambda f, v: f(v) * norm(v) / (norm(v) + 1e-9), "tiny vector"),
    "clipped": (lambda f, v: np.clip(f(v), -200.0, 200.0), "1000 times|huge|does not grow"),
    "the first coordinate is lost": (lambda f, v: np.append(0.0, f(v)[1:]), "coordinate 0|place of a coordinate"),
    "NaN where v is 0": (lambda f, v: f(v) * (v / v), "not finite|NaN"),
}
FOR_ONE_MESSAGE = {"the norm is not restored", "clipped", "NaN where v is 0"}  # the others are slow
OF_CHANCE = {
    "numbers from elsewhere": (lambda f: lambda v, rng, **s: f(v, np.random.default_rng(), **s), "come from rng"),
    "the same numbers": (lambda f: lambda v, rng, **s: f(v, np.random.default_rng(3), **s), "fixed\\s*seed"),
}


@pytest.mark.parametrize("id", COMPRESSORS)
def test_usual_mistakes_of_a_compressor_are_named(id):
    right = COMPRESSORS[id]
    of_chance = "rng" in right.__code__.co_varnames
    for name, (change, words) in USUAL.items():
        if of_chance and name in FOR_ONE_MESSAGE:
            continue

        @functools.wraps(right)
        def wrong(v, *more, change=change, **settings):
            return change(lambda v: right(v, *more, **settings), v)

        with np.errstate(all="ignore"):
            found = th.grade(wrong, id)
        assert not found and re.search(words, found.faults[0]), (name, found)
    for name, (make, words) in OF_CHANCE.items() if of_chance else ():
        found = th.grade(functools.wraps(right)(make(right)), id)
        assert not found and re.search(words, found.faults[0]), (name, found)
