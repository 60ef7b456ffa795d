"""Construct from a solution the problem, the compressor and the start with which `theory.run` reaches the worst case.

The Gram matrix is factored into vectors, and the program is run on them. The points at which it evaluates a function
become those of an interpolating function, and its messages become those of a compressor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..compressors.codec import compressor
from ..core import require
from ..methods.differences.ef21 import EF21
from ..methods.local.local_sgd import LocalSGD
from ..methods.memory.error_feedback import ErrorFeedback, NoFeedback
from ..methods.schedules import Constant
from ..methods.sgd import ParallelSGD
from ..problems.numpy_function import function
from .cases import CASES, Case, Solution, solution_of
from .interpolation import Interpolant, RecordedMessages, interpolant
from .programs import MEASURES, PROGRAMS, State, World

TOLERANCE = 1e-5  # relative distance of a run from the value of its semidefinite program
NOTHING = 1e-6  # relative to the start: values below it are compared as such, since the solver does not resolve them
NO_VECTOR = 1e-14  # eigenvalues of a Gram matrix that are 0, relative to the largest


class Solved(World):
    """A world that returns the vectors of a solution, in the order in which they were requested.

    Parameters
    ----------
    case : Case
    solution : Solution
    """

    def __init__(self, case: Case, solution: Solution) -> None:
        super().__init__(len(case.constants), case.s)
        count = int((np.sqrt(8 * len(solution.gram) + 1) - 1) / 2)
        gram = np.zeros((count, count))
        gram[np.tril_indices(count)] = solution.gram
        sizes, axes = np.linalg.eigh(gram + np.tril(gram, -1).T)
        kept = sizes > NO_VECTOR * sizes[-1]
        self._vectors, self._values = iter(axes[:, kept] * np.sqrt(sizes[kept])), iter(solution.values)
        self.start = next(self._vectors)
        nothing = 0.0 * self.start
        self.seen = [[(nothing, nothing, 0.0)] for _ in case.constants]
        self.sent: list[tuple[np.ndarray, np.ndarray]] = []

    def look(self, i: int, x: np.ndarray) -> tuple[np.ndarray, float]:
        """The next vector and value."""
        self.seen[i].append((x, next(self._vectors), next(self._values)))
        return self.seen[i][-1][1:]

    def send(self, i: int, v: np.ndarray) -> np.ndarray:
        """The next vector."""
        self.sent.append((v, next(self._vectors)))
        return self.sent[-1][1]

    def square(self, v: np.ndarray) -> float:
        """||v||^2."""
        return float(v @ v)


class Live(World):
    """A world that evaluates functions at each vector; it measures the result of a run.

    Parameters
    ----------
    case : Case
    functions : sequence of Interpolant
    """

    def __init__(self, case: Case, functions: Any) -> None:
        super().__init__(len(case.constants), case.s)
        self.functions = functions

    def look(self, i: int, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Gradient and value at x."""
        return self.functions[i].gradient(x), self.functions[i].value(x)

    def square(self, v: np.ndarray) -> float:
        """||v||^2."""
        return float(v @ v)


class WorstCase(NamedTuple):
    """A problem, a method with its compressor, and a start with which a run reaches the worst case.

    Attributes
    ----------
    case : Case
        The case.
    method : method
        The method with the compressor of the worst case.
    problem : FunctionProblem
        The worst function; with several workers, a row for each.
    x0 : ndarray, shape (d,)
        The start.
    steps, workers : int
        As for `theory.run`.
    value : float
        The value of the semidefinite program: no run has a larger final error, relative to the start.
    functions : tuple of Interpolant
        The functions, one for each worker of the case.
    """

    case: Case
    method: Any
    problem: Any
    x0: np.ndarray
    steps: int
    workers: int
    value: float
    functions: tuple[Interpolant, ...]

    @property
    def compressor(self) -> Any:
        """The compressor of the method; None where nothing is compressed."""
        return self.method.compressor if self.case.s else None

    def run(self, run: Any = None, **options: Any) -> Any:
        """The result of `theory.run`, with messages in float64.

        Parameters
        ----------
        run : callable, optional
            A function that is called instead of `theory.run`.
        **options
            More arguments, such as ``comm``.

        Returns
        -------
        scipy.optimize.OptimizeResult
        """
        if run is None:
            from ..cluster.run import run
        usual = {"workers": self.workers, "steps": self.steps, "x0": self.x0, "wire_dtype": np.float64}
        return run(self.method, self.problem, **usual | {"record_every": self.steps} | options)

    def left(self, result: Any, comm: Any = None) -> float:
        """The final error of a run relative to the start, to be compared with ``value``.

        Parameters
        ----------
        result : OptimizeResult
            Of `run`.
        comm : mpi4py communicator, optional
            That of the run: a rank knows its own memories only.

        Returns
        -------
        float
        """
        measure, memories = MEASURES[self.case.measure][1], np.asarray(result.memory)
        if comm is not None:
            memories = np.concatenate(comm.allgather(memories))
        world = Live(self.case, self.functions)
        end = State(np.asarray(result.last), tuple(memories))
        return measure(world, end) / measure(world, State(self.x0))


def _method(case: Case, sent: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    """The package's method."""
    step, shards = Constant(case.options["step"]), "contiguous" if len(case.constants) > 1 else "shared"
    if case.program == "local":
        return LocalSGD(step=step, local_steps=case.options["local_steps"], shards=shards)
    if not case.s:
        return ParallelSGD(step=step, shards=shards, momentum=case.options.get("momentum", 0.0))
    vectors, messages = (np.array(one) for one in zip(*sent, strict=True))
    recorded: Any = RecordedMessages(case.s, vectors, messages - vectors)
    C = compressor(recorded, delta=1.0 - case.s**2)
    if case.program == "ef21":
        return EF21(C, step, shards=shards)
    return ParallelSGD(C, step, ErrorFeedback() if case.program == "feedback" else NoFeedback(), shards=shards)


def _constants(case: Case) -> list[tuple[float, float]]:
    """Return mu and L of the functions of a run: for a proximal step, those of the Moreau envelope."""
    length = case.options["step"]
    return [(mu / (1.0 + length * mu), 1.0 / length) if np.isinf(top) else (mu, top) for mu, top in case.constants]


def worst_case(
    method: str,
    steps: int,
    *,
    workers: int | None = None,
    constants: Sequence[tuple[float, float]] | None = None,
    s: float | None = None,
    **options: float,
) -> WorstCase:
    """A worst-case instance that can be run: no function of the class and no compressor gives a larger final error.

    Parameters
    ----------
    method : str
        A method in the list of cases, `theory.worst.CASES`: "gd", "compressed-gd", "ef", "ef21", "ef-workers",
        "ef-different", "heavy-ball", "local-gd", "proximal".
    steps : int
        T.
    workers : int, optional
        A multiple of the number of different functions, by default that number; each function has as many workers.
    constants : sequence of (float, float), optional
        mu and L of each function, in place of those of the list.  With this argument, with the following ones, or with
        a number of steps that is not in the list, the case is solved with PEPit.
    s : float, optional
        sqrt(1 - delta) of the compressor.
    **options
        ``step``, ``momentum`` or ``local_steps``.

    Returns
    -------
    WorstCase
        Method, problem, start and value.

    Raises
    ------
    ValueError
        If the method is not in the list, or another argument is outside its domain.
    ImportError
        If a case has to be solved and PEPit is not installed.

    Notes
    -----
    The value is that of a semidefinite program: performance estimation, [taylor2017smooth].  The package contains the
    solutions of the list; ``python -m theory.experiment atlas --solve`` solves them again.

    Examples
    --------
    >>> worst = worst_case("ef", 4)
    >>> left = worst.left(worst.run())
    >>> abs(left / worst.value - 1.0) < TOLERANCE
    True
    """
    families = {case.family: case for case in CASES.values() if case.runs}
    require(method in families, "method", method, f"one of {', '.join(families)}")
    base = families[method]
    changes: dict[str, Any] = {"options": base.options | {"steps": steps} | options}
    changes |= {} if constants is None else {"constants": tuple((float(mu), float(top)) for mu, top in constants)}
    changes |= {} if s is None else {"s": float(s)}
    _check(base, base._replace(**changes))
    case = CASES.get(f"{method}.{steps}")
    if case is None or any(getattr(case, name) != value for name, value in changes.items()):
        from .solver import INSIDE, solve

        case = base._replace(id=f"{method}.{steps}", ours=None, printed=None, claims=(), **changes)
        scaled, unit = _scaled(case)
        for inside in (INSIDE, 10 * INSIDE):  # further inside, the worst error is smaller, and the solver more accurate
            try:
                found = instance(scaled, solve(scaled, inside), workers, unit)
            except RuntimeError as error:
                raise ValueError(f"constants: the program of {case.regime} cannot be solved: {error}") from None
            left = found.left(found.run())
            if abs(left - found.value) <= TOLERANCE * max(found.value, NOTHING):
                return found
        why = f"it says that {found.value:.6g} is left, and its own run leaves {left:.6g}"
        raise ValueError(f"constants: the program of {case.regime} cannot be solved accurately: {why}")
    return instance(case, solution_of(case), workers)


def _scaled(case: Case) -> tuple[Case, float]:
    """The case with functions divided by the largest L, or by 1/step for a proximal step; and this divisor.

    Points, and errors relative to the start, are the same; solvers need numbers near 1.
    """
    tops = [top for _, top in case.constants if np.isfinite(top)]
    unit = max(tops) if tops else 1.0 / case.options["step"]
    constants = tuple((mu / unit, top / unit) for mu, top in case.constants)
    return case._replace(constants=constants, options=case.options | {"step": case.options["step"] * unit}), unit


def _check(base: Case, case: Case) -> None:
    """Reject arguments that the program of a case does not allow."""
    steps, together = case.options["steps"], case.options.get("local_steps", 1)
    good = isinstance(steps, (int, np.integer)) and steps >= 1 and steps % together == 0
    require(good, "steps", steps, "an integer, at least 1" + f", a multiple of {together}" * (together > 1))
    for name in case.options.keys() - {"steps"}:
        require(name in base.options, "options", name, f"of {', '.join(sorted(base.options.keys() - {'steps'}))}")
        require(0.0 < case.options[name] < np.inf, name, case.options[name], "a finite number above 0")
    require(case.s == base.s or 0.0 < case.s < 1.0 and base.s > 0.0, "s", case.s, "above 0, below 1, with a compressor")
    smooth = np.isfinite(base.constants[0][1])
    for mu, top in case.constants:
        allowed = "0 <= mu < L, and L " + ("finite" if smooth else "infinite, for a proximal step")
        require(0.0 <= mu < top and np.isfinite(top) == smooth, "constants", (mu, top), allowed)
    require(len(case.constants) >= 1, "constants", case.constants, "mu and L of one function or more")


def instance(case: Case, solution: Solution, workers: int | None = None, unit: float = 1.0) -> WorstCase:
    """The problem, the method and the start constructed from a solution.

    Parameters
    ----------
    case : Case
    solution : Solution
    workers : int, optional
        A multiple of the number of the case's functions.
    unit : float
        The functions of the case are multiplied by it, and the step divided by it.

    Returns
    -------
    WorstCase

    Raises
    ------
    ValueError
        If the number of workers is not a multiple of the number of functions.
    """
    each = len(case.constants)
    given = each if workers is None else workers
    require(given >= 1 and given % each == 0, "workers", workers, f"a multiple of {each}")
    w, measure = Solved(case, solution), MEASURES[case.measure][1]
    measure(w, State(w.start))
    measure(w, PROGRAMS[case.program](w, **case.options))
    factors = unit if case.program in ("compressed", "ef21") else 1.0  # messages are gradients there, else steps
    w.sent = [(factors * v, factors * c) for v, c in w.sent]
    constants = tuple((unit * mu, unit * top) for mu, top in case.constants)
    case = case._replace(constants=constants, options=case.options | {"step": case.options["step"] / unit})
    seen = [[(x, unit * g, unit * value) for x, g, value in one] for one in w.seen]
    functions = tuple(
        interpolant(*(np.array(part) for part in zip(*points, strict=True)), mu=mu, lipschitz=top)
        for points, (mu, top) in zip(seen, _constants(case), strict=True)
    )
    mu, top = (float(np.mean(ends)) for ends in zip(*_constants(case), strict=True))
    problem = function(
        lambda x: float(np.mean([f.value(x) for f in functions])),
        lambda x: np.repeat([f.gradient(x) for f in functions], given // each, axis=0),
        w.start.size,
        n=given,
        lipschitz=top,
        strong_convexity=mu,
        minimizer=np.zeros(w.start.size),
    )
    return WorstCase(case, _method(case, w.sent), problem, w.start, case.steps, given, solution.value, functions)
