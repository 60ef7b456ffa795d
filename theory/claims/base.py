r"""Claims: a statement with a source, a bound, a measurement, and mutants that the measurement must refute.

A claim is one decorated function.  It measures ``context.subject``, the subject of the statement (a factory of a
compressor, a method, a formula), and returns measured and predicted numbers::

    @claim(
        "sign.contraction",
        title="Scaled sign",
        statement="The scaled sign keeps the share ||v||_1^2 / (d ||v||_2^2) of the squared norm.",
        latex=r"\|C(v) - v\|^2 = (1 - \|v\|_1^2 / (d \|v\|_2^2)) \|v\|^2",
        source="Karimireddy et al., ICML 2019, Lemma 8",
        bibtex="karimireddy2019error",
        kind="identity",
        subject=scaled_sign,
        mutants={"scale forgotten": np.sign},
    )
    def _(context):
        v = context.normal(100)
        error = np.sum((context.subject(v) - v) ** 2) / (v @ v)
        return Measurement(identity("error / norm", error, 1 - np.abs(v).sum() ** 2 / (v.size * (v @ v))))

``verify(id)`` then measures the subject, applies the rule of each check, and does the same to every mutant.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.random import key
from ..measure import LEVEL, Interval, exactly
from .sources import BIBTEX

__all__ = [
    "Check",
    "Claim",
    "Context",
    "Measurement",
    "claim",
    "equality",
    "find_claim",
    "identity",
    "list_claims",
    "lower",
    "rate",
    "upper",
]

KINDS = ("identity", "equality", "tight", "upper", "lower", "rate")
PACKAGE = Path(__file__).resolve().parents[1]
NOTEBOOK = "__main__"  # the module of notebook cells and of scripts
ROUNDING = 1e-9  # relative rounding error allowed in an equality whose samples do not vary


class Check(NamedTuple):
    """A measured number, its prediction, and the rule that compares them.

    Attributes
    ----------
    label : str
        What was measured, and where.
    rule : {"identity", "equality", "upper", "lower", "rate"}
    interval : Interval
        The measured number.
    predicted : float
        The closed form, or the bound.
    tolerance : float
        Identity: of the difference, relative to the prediction, or absolute if that is 0.  Rate: distance from the
        predicted slope.  Equality, upper, lower: relative rounding.
    trivial : float or None
        A bound that is no better than this where it was evaluated holds vacuously.
    """

    label: str
    rule: str
    interval: Interval
    predicted: float
    tolerance: float
    trivial: float | None = None


def identity(label: str, measured: float, predicted: float, tolerance: float = 1e-12) -> Check:
    """Two computed numbers that agree to machine precision.

    Parameters
    ----------
    label : str
        What was measured, and where.
    measured : float
        The computed number.
    predicted : float
        The closed form.
    tolerance : float
        Tolerance of the difference, relative to the prediction; absolute if that is 0.

    Returns
    -------
    Check
        To be handed to `Measurement`.

    Examples
    --------
    >>> identity("1/3 + 1/3", 1 / 3 + 1 / 3, 2 / 3).rule
    'identity'
    """
    return Check(label, "identity", exactly(measured), float(predicted), tolerance)


def equality(label: str, interval: Interval, predicted: float, tolerance: float = ROUNDING) -> Check:
    """An equality in law: the interval contains the value (and is narrow enough to refute every mutant).

    Parameters
    ----------
    label : str
        What was measured, and where.
    interval : Interval
        The measured number.
    predicted : float
        The closed form.
    tolerance : float
        Relative rounding.

    Returns
    -------
    Check
        To be handed to `Measurement`.

    Examples
    --------
    >>> from theory.measure import exactly
    >>> equality("omega", exactly(3.0), 3.0).rule
    'equality'
    """
    return Check(label, "equality", interval, float(predicted), tolerance)


def upper(label: str, interval: Interval, bound: float, trivial: float | None = None) -> Check:
    """An upper bound: the interval's upper end is below it.

    Parameters
    ----------
    label : str
        What was measured, and where.
    interval : Interval
        The measured number.
    bound : float
        The closed form.
    trivial : float, optional
        A bound that is no better than this says nothing: it holds, vacuously.

    Returns
    -------
    Check
        To be handed to `Measurement`.

    Examples
    --------
    >>> from theory.measure import exactly
    >>> upper("E f - f*", exactly(0.5), bound=1.0).predicted
    1.0
    """
    return Check(label, "upper", interval, float(bound), ROUNDING, trivial)


def lower(label: str, interval: Interval, bound: float, trivial: float | None = None) -> Check:
    """A lower bound: the interval's lower end is above it.

    Parameters
    ----------
    label : str
        What was measured, and where.
    interval : Interval
        The measured number.
    bound : float
        The closed form.
    trivial : float, optional
        A bound that is no better than this says nothing: it holds, vacuously.

    Returns
    -------
    Check
        To be handed to `Measurement`.

    Examples
    --------
    >>> from theory.measure import exactly
    >>> lower("E f - f*", exactly(0.5), bound=0.25).predicted
    0.25
    """
    return Check(label, "lower", interval, float(bound), ROUNDING, trivial)


def rate(label: str, slope: Interval, predicted: float, tolerance: float) -> Check:
    """A rate: the interval of the log-log slope is within the tolerance of the predicted slope.

    Parameters
    ----------
    label : str
        What was measured, and where.
    slope : Interval
        The measured slope.
    predicted : float
        The slope of the theorem.
    tolerance : float
        Maximum distance of the interval's ends from it.

    Returns
    -------
    Check
        To be handed to `Measurement`.

    Examples
    --------
    >>> from theory.measure import exactly
    >>> rate("error against steps", exactly(-1.01), -1.0, tolerance=0.05).tolerance
    0.05
    """
    return Check(label, "rate", slope, float(predicted), tolerance)


class Measurement:
    """Result of a claim's measurement: its checks, the headline first, the number of samples, and a remark.

    Parameters
    ----------
    *checks : Check
        All comparisons, the headline first.
    samples : int
        Number of samples; 0 if everything was computed.
    note : str
        A remark.
    """

    def __init__(self, *checks: Check, samples: int = 0, note: str = ""):
        self.checks, self.samples, self.note = checks, samples, note


@dataclass(frozen=True)
class Context:
    """The argument of a measurement.

    Attributes
    ----------
    subject : object
        What is measured: the claim's subject, or a mutant in its place.
    name : str
        The claim's id; it makes the random numbers of different claims independent.
    seed : int
        Seed of all random numbers, with ``name``.
    quick : bool
        Whether to use fewer samples.
    effort : int
        1 at first, increased while the verdict is undecided.
    data : Dataset or None
        Data to replace the default, for claims about data.
    """

    subject: Any
    name: str = ""
    seed: int = 0
    quick: bool = False
    effort: int = 1
    data: Any = None

    def samples(self, full: int, quick: int | None = None) -> int:
        """Number of samples; ``full`` is that of a full run at the first attempt."""
        return self.effort * ((quick or max(2, full // 4)) if self.quick else full)

    def level(self, checks: int) -> float:
        """The level of each of several intervals that must all hold together (Bonferroni)."""
        return 1.0 - (1.0 - LEVEL) / checks

    def stream(self, *path: int | str) -> int:
        """A seed for the purpose ``path``; another effort gives new random numbers."""
        return int(key(self.seed, "claim", self.name, self.effort, *path))

    def normal(self, size, *path: int | str) -> np.ndarray:
        """Standard normal numbers, the same at every effort: test vectors."""
        return np.random.default_rng(int(key(self.seed, "vector", self.name, *path))).standard_normal(size)


@dataclass(frozen=True)
class Claim:
    """A statement that can be measured; made by :func:`claim`, whose parameters describe the fields."""

    id: str
    title: str
    statement: str
    source: str
    kind: str
    measure: Callable[[Context], Measurement]
    subject: Any
    latex: str = ""
    bibtex: str = ""
    tight_where: str = ""
    proof: str = ""
    bound: Callable | None = None
    mutants: Mapping[str, Any] = field(default_factory=dict)
    printed: bool = False
    see: tuple[str, ...] = ()

    @property
    def expected(self) -> tuple[str, ...]:
        """The verdicts that raise no alarm."""
        return ("refuted",) if self.printed else ("holds", "holds, vacuous")

    @property
    def file(self) -> str:
        """The file of a claim from outside the package; empty for claims of the package or a notebook."""
        path = Path(_origin(self.measure)).resolve()
        return str(path) if path.is_file() and not path.is_relative_to(PACKAGE) else ""

    def bound_signature(self, annotated: bool = True) -> str:
        """How to call the bound: its module, its parameters, and those fixed by the claim."""
        if self.bound is None:
            return ""
        function = getattr(self.bound, "func", self.bound)  # a partial fixes the form
        names = inspect.signature(function)
        if not annotated:
            bare = [p.replace(annotation=p.empty) for p in names.parameters.values()]
            names = names.replace(parameters=bare, return_annotation=names.empty)
        home = "" if function.__module__ == NOTEBOOK else f"{function.__module__}."
        if home.startswith("theory.bounds."):
            home = "theory.bounds."
        given = "".join(f", here {k}={v!r}" for k, v in getattr(self.bound, "keywords", {}).items())
        return f"{home}{function.__name__}{names}{given}"


REGISTRY: dict[str, Claim] = {}


def _origin(measure) -> str:
    """The file that defines a claim and may redefine it; the cells of a notebook, files for Python, count as one."""
    code = getattr(measure, "__code__", None)
    return NOTEBOOK if code is None or measure.__module__ == NOTEBOOK else code.co_filename


def claim(
    id: str,
    *,
    title: str,
    statement: str,
    source: str,
    kind: str,
    subject: Any,
    latex: str = "",
    bibtex: str = "",
    tight_where: str = "",
    proof: str = "",
    bound: Callable | None = None,
    mutants: Mapping[str, Any] | None = None,
    printed: bool = False,
    see: tuple[str, ...] = (),
):
    r"""Register a claim: a decorator for the function that measures it.

    Parameters
    ----------
    id : str
        Topic and name, such as ``"qsgd.variance"``.
    title : str
        A few words, for tables.
    statement : str
        One sentence.
    source : str
        Source, with the theorem's number; "derived" if there is none.
    kind : {"identity", "equality", "tight", "upper", "lower", "rate"}
    subject : object
        The value of ``context.subject``.
    latex : str
        The formula.
    bibtex : str
        A key of :data:`theory.claims.sources.BIBTEX`, or a BibTeX entry.
    tight_where : str
        Where the bound is attained.
    proof : str
        A short sketch.
    bound : function
        The closed form, from :mod:`theory.bounds`; or your own, for a claim outside the package.
    mutants : dict
        Name to subject: deliberately wrong versions, all of which the claim must refute.
    printed : bool
        The statement is in print and refuted; its correct reading is a separate claim, named in ``see``.
    see : tuple of str
        Other claims: the correct reading, or those with the mutants that this bound is too loose to refute.

    Returns
    -------
    function
        A decorator; what it returns is the :class:`Claim`.

    Raises
    ------
    ValueError
        If the id is taken, the kind or the BibTeX key is unknown, or there is neither a mutant nor a claim in ``see``.
    """
    if kind not in KINDS:
        raise ValueError(f"kind: got {kind!r}, allowed: {', '.join(KINDS)}")
    if bibtex and bibtex not in BIBTEX and not bibtex.lstrip().startswith("@"):
        raise ValueError(f"bibtex: got {bibtex!r}, allowed: a BibTeX entry or one of {', '.join(sorted(BIBTEX))}")
    if not mutants and not see:
        raise ValueError(f"mutants: got none for {id!r}, allowed: at least one, or see=(claims that have them,)")

    def decorate(measure):
        known = REGISTRY.get(id)
        if known is not None and _origin(known.measure) != _origin(measure):
            raise ValueError(f"id: got {id!r}, allowed: a name that is not taken")
        REGISTRY[id] = Claim(
            id,
            title,
            statement,
            source,
            kind,
            measure,
            subject,
            latex,
            bibtex,
            tight_where,
            proof,
            bound,
            dict(mutants or {}),
            printed,
            tuple(see),
        )
        return REGISTRY[id]

    return decorate


def list_claims() -> list[str]:
    """The ids of all claims, in the order of definition.

    Returns
    -------
    list of str
        Each is known to `find_claim`, `verify` and `explain`.

    Examples
    --------
    >>> "qsgd.variance" in list_claims()
    True
    """
    return list(REGISTRY)


def find_claim(id: str) -> Claim:
    """The claim with this id.

    Parameters
    ----------
    id : str
        One of `list_claims`.

    Returns
    -------
    Claim

    Raises
    ------
    ValueError
        If there is none; the message gives the nearest ids.

    Examples
    --------
    >>> find_claim("qsgd.variance").id
    'qsgd.variance'
    """
    if id in REGISTRY:
        return REGISTRY[id]
    near = difflib.get_close_matches(str(id), REGISTRY, n=3, cutoff=0.4)
    near = near or [name for name in REGISTRY if name.split(".")[0] == str(id).split(".")[0]] or list(REGISTRY)[:5]
    raise ValueError(f"id: got {id!r}, allowed: a claim; the nearest are {', '.join(near)} (all: list_claims())")
