"""Cases, each with a method, a class of functions and parameters; and the cases whose solutions the package contains.

Everything about a case is computed from its fields: the formulas of `theory.bounds` that are stated for it are called
with its parameters.  They are compared with the value that a solver found.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from .. import bounds
from .interpolation import LEMMAS
from .programs import MEASURES, PROGRAMS

# --- Cases -----------------------------------------------------------------------------------------------------------

RECORDS = Path(__file__).with_name("solutions.jsonl")


class Case(NamedTuple):
    """A method on a class of functions with given parameters.

    Attributes
    ----------
    id : str
    method, functions : str
        The method and the class of functions, in words.
    program : str
        One of `PROGRAMS`, which are run, or of `LEMMAS`, which are one step from any state.
    options : dict
        The arguments of the program.
    constants : tuple of (float, float)
        mu and L of each worker's function.
    s : float
        sqrt(1 - delta) of the compressor.
    measure : str
        One of `MEASURES`, relative to its value at the start.
    ours, printed : callable or None
        The formula of the package, and the printed one if it differs.
    claims : tuple of str
        The claims about the formula.
    contracts : bool
        Whether the formula is a factor per step: the closer it is to 1, the more steps are needed.
    stated_for : str
        The functions for which the formula is stated, if they are not those of the case.
    derived : bool
        Whether the formula follows from the claims, and is not printed itself.
    relaxed : bool
        Whether the conditions on points of a function are only known to be necessary: the program is then an upper
        bound.
    """

    id: str
    method: str
    functions: str
    program: str
    options: dict[str, Any]
    constants: tuple[tuple[float, float], ...] = ((1.0, 4.0),)
    s: float = 0.0
    measure: str = "distance"
    ours: Callable[[], float] | None = None
    printed: Callable[[], float] | None = None
    claims: tuple[str, ...] = ()
    contracts: bool = False
    stated_for: str = ""
    derived: bool = False
    relaxed: bool = False

    @property
    def runs(self) -> bool:
        """Whether there is an instance to run."""
        return self.program in PROGRAMS

    @property
    def family(self) -> str:
        """The id without the number of steps."""
        return self.id.rsplit(".", 1)[0]

    @property
    def steps(self) -> int:
        """Number of steps; 1 for a lemma."""
        return int(self.options.get("steps", 1))

    @property
    def regime(self) -> str:
        """The parameters in words."""
        functions = "; ".join(f"mu={mu:g}, L={top:g}" for mu, top in dict.fromkeys(self.constants))
        known = [functions] if self.runs else []
        known += [f"N={len(self.constants)}"] * (len(self.constants) > 1) + [f"s={self.s:g}"] * (self.s > 0)
        return ", ".join(known + [f"{name}={value:.4g}" for name, value in self.options.items()])

    @property
    def measured(self) -> str:
        """The compared quantity, in words."""
        return MEASURES[self.measure][0] if self.runs else self.measure

    @property
    def digest(self) -> str:
        """A digest of the parameters and the program's source, on which a solution depends."""
        program = PROGRAMS.get(self.program) or LEMMAS[self.program]
        measures = [MEASURES[self.measure][1]] if self.runs else []
        text = [line for function in (program, *measures) for line in _source(function)]
        facts = [self.program, self.options, self.constants, self.s, text]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _source(function: Callable) -> list[str]:
    """The statements of a function and of the functions in its file that it calls, without docstrings and comments."""
    (tree,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(tree, ast.FunctionDef)
    called = [vars(inspect.getmodule(function)).get(name) for name in function.__code__.co_names]
    here = [one for one in called if inspect.isfunction(one) and one.__module__ == function.__module__]
    return [ast.unparse(line) for line in tree.body[1:]] + [line for one in here for line in _source(one)]


class Solution(NamedTuple):
    """The result of a solver for a case.

    Attributes
    ----------
    case : str
        Id of the case.
    value : float
        The dual value: an upper bound on the worst case, up to the solver's tolerance.
    attained : float
        The worst case over functions and compressors slightly inside the class; the stored solution attains it.
    gram : tuple of float
        Lower triangle of the inner products of the solution's vectors; empty for a lemma, which has no run.
    values : tuple of float
        Function values, in the order of evaluation.
    solver : str
        Names and versions of the solver and its interface.
    digest : str
        Digest of the solved case.
    """

    case: str
    value: float
    attained: float
    gram: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    solver: str = ""
    digest: str = ""


@functools.cache
def stored_solutions() -> dict[str, Solution]:
    """The solutions that the package contains, by case."""
    lines = RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else []
    return {one["case"]: Solution(**one) for one in map(json.loads, lines)}


def solution_of(case: Case) -> Solution:
    """The stored solution of a case.

    Raises
    ------
    ValueError
        If no solution is stored, or if it belongs to another version of the case.
    """
    found = stored_solutions().get(case.id)
    if found is None or found.digest != case.digest:
        state = "no solution is stored" if found is None else "the stored solution belongs to another version"
        raise ValueError(f"{case.id}: {state}; python -m theory.experiment atlas --solve {case.id} (extra pepit)")
    return found


# --- The cases whose solutions the package contains ------------------------------------------------------------------

SMOOTH, COMMON = "smooth, strongly convex", "smooth, strongly convex, one minimum for all workers"

MU, TOP, S = 1.0, 4.0, 0.3

DELTA, KAPPA = 1.0 - S**2, TOP / MU

TWO, APART = ((MU, TOP), (MU, TOP)), ((1.0, 4.0), (1.0, 10.0))

SHORT, BEST, LONG = 1.0 / TOP, 2.0 / (MU + TOP), 1.8 / TOP

NO_MEMORY = float(bounds.compressed_descent_step(DELTA, mu=MU, lipschitz=TOP))

FEEDBACK = float(bounds.exact_feedback_step(DELTA, mu=MU, lipschitz=TOP))

DIFFERENT = float(bounds.two_workers_feedback_step(DELTA, *APART))

BALL: dict[str, float] = {"step": 4.0 / 9.0, "momentum": 1.0 / 9.0}  # the best on quadratics with these mu and L

ENVELOPE = {"mu": MU / (1.0 + BEST * MU), "lipschitz": 1.0 / BEST}  # of the Moreau envelope


def _descent(step: float, mu: float = MU, lipschitz: float = TOP) -> Callable[[int], float]:
    return lambda steps: bounds.gd_strongly_convex(steps, mu=mu, lipschitz=lipschitz, step=step, gap=1.0)


def _feedback(steps: int) -> float:
    return bounds.exact_feedback_rate(DELTA, KAPPA) ** steps


def _local(steps: int) -> float:
    return bounds.outer_rate(MU, TOP, SHORT, 2, outer=1.0) ** (2 * (steps // 2))


def _on_quadratics(steps: int) -> float:
    rate = bounds.frozen_adam_rate(MU, TOP, BALL["step"] / (1.0 - BALL["momentum"]), BALL["momentum"])
    return rate ** (2 * steps)


def _runs(
    name: str,
    method: str,
    program: str,
    steps: tuple[int, ...],
    ours: Callable[[int], float],
    options: dict[str, float],
    **facts: Any,
) -> list[Case]:
    """A case for each number of steps."""
    functions = facts.pop("functions", SMOOTH)
    return [
        Case(
            f"{name}.{T}",
            method,
            functions,
            program,
            {"steps": T} | options,
            ours=functools.partial(ours, T),
            contracts=True,
            **facts,
        )
        for T in steps
    ]


def _lemma(name: str, method: str, functions: str, measured: str, options: dict, **facts: Any) -> Case:
    """One step from any state; the name is that of the lemma and, after a dot, of the parameters."""
    return Case(name, method, functions, name.split(".")[0], options, measure=measured, **facts)


CONVEX, FED_BACK = ("pl.gd.strongly-convex",), "error feedback"

GD, NO_CLASS, STRONG = "gradient descent", "none: every vector", "strongly convex"

WITH_MEMORY = {"s": S, "measure": "energy"}

AT = {"mu": MU, "L": TOP}

PL, SGD = "smooth, Polyak-Lojasiewicz", "SGD"

EXACT, NEAR = ("ef.exact", "ef.exact.certificate"), ("ef.exact.two-workers",)

FACTORS, LEFT = {"step": FEEDBACK, "s": S} | AT, "V after a step, where it was 1"

ONE_STEP: dict[str, Any] = {"ours": lambda: _feedback(1), "contracts": True, "claims": EXACT}

GOSSIP: dict[str, Any] = {
    "rho": 0.5,
    "delta": DELTA,
}  # two workers, weight 1/4: ||I - W|| = 1/2

GAMMA = float(bounds.choco_gamma(0.5, 0.5, DELTA))


def _pull(form: str) -> float:
    nothing = {"distance": 0.0, "second_moment": 0.0, "gap": 0.0}
    return bounds.mem_sgd_iterate(mu=MU, lipschitz=TOP, step=1.0, memory=1.0, form=form, **nothing)


def _descent_with_memory(rho: float) -> float:
    known = {"gradient": 1.0, "second_moment": 1.0, "memory": 0.25}
    return bounds.ef_sgd_descent(lipschitz=1.0, step=0.5, rho=rho, **known)


def _lojasiewicz(step: float) -> Case:
    known: dict[str, Any] = {"mu": 0.2, "lipschitz": 1.0, "step": step, "gap": 1.0}
    return _lemma(
        f"lojasiewicz_step.{step:g}",
        GD,
        PL,
        "f(x) - f* after a step, where it was 1",
        {"step": step, "mu": 0.2, "L": 1.0},
        ours=lambda: bounds.pl_gd(1, form="sharp", **known),
        printed=(lambda: bounds.pl_gd(1, **known)) if step == 1.0 else None,  # Karimi et al. have 1/L
        claims=("pl.gd",),
        contracts=True,
        relaxed=True,
    )


EVERY = [
    *_runs("gd", GD, "descent", (1, 3), _descent(SHORT), {"step": SHORT}, measure="gap", claims=CONVEX),
    *_runs("gd-long", GD, "descent", (2,), _descent(LONG), {"step": LONG}, measure="gap", claims=CONVEX),
    *_runs(
        "compressed-gd",
        "compressed gradient descent",
        "compressed",
        (1, 2, 4),
        lambda steps: bounds.compressed_descent_rate(DELTA, KAPPA) ** steps,
        {"step": NO_MEMORY},
        s=S,
        measure="gap",
        claims=("ef.exact.no-memory",),
    ),
    *_runs(
        "ef", "error feedback", "feedback", (1, 2, 4, 8, 12), _feedback, {"step": FEEDBACK}, claims=EXACT, **WITH_MEMORY
    ),
    *_runs(
        "ef21",
        "EF21",
        "ef21",
        (2, 4),
        lambda steps: (1.0 + S) * _feedback(steps),  # s ||grad f||^2 <= V_T <= rho^T V_0, V_0 <= s (1 + s) ||grad f||^2
        {"step": FEEDBACK},
        s=S,
        measure="gradient",
        derived=True,
        claims=EXACT,
    ),
    *_runs(
        "ef-workers",
        f"{FED_BACK}, 2 workers",
        "feedback",
        (1, 3),
        _feedback,
        {"step": FEEDBACK},
        functions=COMMON,
        constants=TWO,
        claims=("ef.exact.workers",),
        **WITH_MEMORY,
    ),
    *_runs(
        "ef-different",
        f"{FED_BACK}, 2 workers, condition numbers 4 and 10",
        "feedback",
        (1, 3, 6, 7),
        lambda steps: bounds.two_workers_feedback_rate(DELTA, *APART) ** steps,
        {"step": DIFFERENT},
        functions=COMMON,
        constants=APART,
        claims=NEAR,
        **WITH_MEMORY,
    ),
    *_runs(
        "heavy-ball",
        "heavy ball",
        "momentum",
        (2, 4, 6),
        _on_quadratics,
        BALL,
        claims=("adam.frozen",),
        stated_for="quadratics, in the limit of many steps",
    ),
    *_runs(
        "local-gd",
        "local gradient descent, 2 workers",
        "local",
        (2, 4),
        _local,
        {"step": SHORT, "local_steps": 2},
        functions=COMMON,
        constants=TWO,
        claims=("outer.rate",),
    ),
    *_runs(
        "proximal",
        "proximal point, by its Moreau envelope",
        "proximal",
        (1, 3),
        _descent(BEST, **ENVELOPE),
        {"step": BEST},
        derived=True,
        functions=STRONG,
        constants=((MU, math.inf),),
        measure="gap",
        claims=CONVEX,
    ),
    *map(_lojasiewicz, (0.3, 0.7, 1.0, 1.4, 1.8, 1.95)),
    _lemma(
        "noisy_lojasiewicz_step",
        SGD,
        PL,
        "E f(x) - f* after a step",
        {"step": 0.2, "mu": 0.5, "L": 0.501, "second_moment": 5.0},
        ours=lambda: bounds.pl_sgd_constant_step(1, mu=0.5, lipschitz=0.501, step=0.2, second_moment=5.0, gap=1.0),
        claims=("pl.sgd.constant",),
        relaxed=True,
    ),
    _lemma(
        "noisy_smooth_step",
        SGD,
        "smooth",
        "E f(x) - f* after a step",
        {"step": 0.5, "L": 2.0, "gap": 3.0, "gradient_squared": 1.0, "second_moment": 5.0},
        ours=lambda: bounds.pl_sgd_step(3.0, lipschitz=2.0, step=0.5, gradient_squared=1.0, second_moment=5.0),
        claims=("pl.sgd.step",),
    ),
    _lemma(
        "step_with_second_moment",
        SGD,
        STRONG,
        "E ||x - x*||^2 after a step",
        {"step": 0.1, "mu": 1.0, "second_moment": 5.0, "distance": 2.0},
        ours=lambda: bounds.sgd_constant_step(1, mu=1.0, step=0.1, second_moment=5.0, distance=2.0),
        claims=("sgd.constant-step.bound",),
    ),
    _lemma(
        "step_with_variance",
        SGD,
        SMOOTH,
        "E ||x - x*||^2 after a step",
        {"step": 0.6, "mu": 1.0, "L": 2.0, "variance": 3.0, "distance": 2.0},
        ours=lambda: bounds.sgd_constant_step_exact(1, mu=1.0, step=0.6, variance=3.0, distance=2.0),
        claims=("sgd.constant-step",),
    ),
    _lemma(
        "feedback_step",
        "error feedback",
        SMOOTH,
        LEFT,
        FACTORS,
        ours=lambda: _feedback(1),
        contracts=True,
        claims=EXACT,
    ),
    _lemma("ef21_step", "EF21", SMOOTH, LEFT, FACTORS, ours=lambda: _feedback(1), contracts=True, claims=EXACT),
    _lemma(
        "memory",
        FED_BACK,
        "gradients of norm 1",
        "||e||^2",
        {"steps": 6, "step": 0.5, "s": S},
        ours=lambda: bounds.memory_error(DELTA, 0.5, 1.0, steps=6),
        printed=lambda: bounds.memory_error(DELTA, 0.5, 1.0, form="paper"),
        claims=("ef.memory", "ef.memory.paper"),
    ),
    _lemma(
        "feedback_descent",
        FED_BACK,
        "smooth",
        "f(y_+) - f(y), y = x - e",
        {"step": 0.5, "L": 1.0, "gradient": 1.0, "memory": 0.25},
        ours=lambda: _descent_with_memory(0.5),
        claims=("ef.descent",),
    ),
    _lemma(
        "memory_pull",
        "Mem-SGD",
        SMOOTH,
        "what a memory of norm 1 adds to a step, over eta",
        AT,
        ours=lambda: _pull("sharp"),
        printed=lambda: _pull("paper"),
        claims=("memsgd.iterate",),
    ),
    _lemma(
        "choco_round",
        "CHOCO-Gossip, 2 workers",
        NO_CLASS,
        "E after a round, where it was 1",
        {"weight": 0.25, "gamma": GAMMA, "s": S},
        ours=lambda: 1.0 - bounds.choco_rate(form="derived", **GOSSIP),
        printed=lambda: 1.0 - bounds.choco_rate(**GOSSIP),
        claims=("choco.gossip",),
        contracts=True,
    ),
    _lemma(
        "variance_reduced_gradient",
        "SVRG",
        "means of 2 smooth convex functions",
        "E ||g||^2",
        {"L": 1.0, "gap": 1.0, "anchor_gap": 1.0},
        ours=lambda: bounds.svrg_second_moment(1.0, 1.0, 1.0),
        claims=("qsvrg.second-moment",),
    ),
    _lemma(
        "local_step",
        "local SGD, 2 workers",
        SMOOTH,
        "||xbar - x*||^2 after a step",
        {"step": 0.25, "mu": 0.1, "L": 1.0, "distance": 1.0, "gap": 0.25, "deviation": 0.1},
        ours=lambda: bounds.local_sgd_step(1.0, 0.25, 0.1, mu=0.1, lipschitz=1.0, step=0.25, workers=2),
        claims=("local-sgd.step",),
    ),
    _lemma(
        "proximal_progress",
        "a proximal step (Catalyst)",
        "smooth",
        "||grad f||^2 where the step lowers f by 1",
        {"L": 1.0, "theta": 3.0},
        ours=lambda: bounds.catalyst_factor(1.0, 3.0),
        claims=("catalyst.progress",),
    ),
]

CASES: dict[str, Case] = {case.id: case for case in EVERY}
