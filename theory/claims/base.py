r"""Claims: a statement with a source, a bound, a measurement, and mutants that the measurement must refute.

A claim is one decorated function.  It measures ``context.subject``, the subject of the statement (a factory of a
compressor, a method, a formula), and yields checks of measured against predicted numbers::

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
        yield identity("error / norm", error, 1 - np.abs(v).sum() ** 2 / (v.size * (v @ v)))

What is not given is taken from the docstring of ``bound``.  ``verify(id)`` then measures the subject, applies the rule
of each check, and does the same to every mutant.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import linecache
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..bounds.closed_form import described
from .checks import Check, Context
from .display import claim_card
from .sources import BIBTEX, KNOWLEDGE
from .sources import source_known as known_source

__all__ = ["Claim", "claim", "find_claim", "list_claims"]

TEXTS = ("in print", "quoted", "reading")
KINDS = ("identity", "equality", "tight", "upper", "lower", "rate")
CERTIFICATES = ("identity", "exact witness", "composition", "semidefinite program", "measured", "conjecture")
PACKAGE = Path(__file__).resolve().parents[1]
NOTEBOOK = "__main__"  # the module of notebook cells and of scripts


@dataclass(frozen=True, repr=False)
class Claim:
    """A statement that can be measured; made by :func:`claim`, whose parameters describe the fields."""

    id: str
    title: str
    statement: str
    source: str
    kind: str
    measure: Callable[[Context], Iterable[Check | str]]
    subject: Any
    latex: str = ""
    bibtex: str = ""
    tight_where: str = ""
    proof: str = ""
    bound: Callable | None = None
    mutants: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    quote: str = ""
    see: tuple[str, ...] = ()
    certificate: str = ""
    measured_by: str = ""
    source_known: str = ""
    version: int = 1
    place: tuple[str, int] = ("", 0)

    def __repr__(self) -> str:
        return f"<claim {self.id}: {self.title}; {self.source}>"

    def _repr_html_(self) -> str:
        return claim_card(self)

    @property
    def cite(self) -> str:
        """The id with the version of the statement, such as ``qsgd.variance@1``."""
        return f"{self.id}@{self.version}"

    @property
    def code(self) -> str:
        """The source of the claim: the statement that registers it, with its measurement; empty if it is not found."""
        file, line = self.place
        lines = linecache.getlines(file)
        for node in ast.parse("".join(lines)).body:
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
            if first <= line <= (node.end_lineno or line):
                return "".join(lines[first - 1 : node.end_lineno]).rstrip()
        return ""

    @property
    def expected(self) -> tuple[str, ...]:
        """The verdicts that raise no alarm."""
        return ("refuted",) if self.text else ("holds", "holds, slack", "holds, loose", "vacuous")

    @property
    def formula(self) -> str:
        """Name of the function that computes what is predicted; empty if it is not one of `theory.bounds`."""
        return getattr(getattr(self.bound, "func", self.bound), "__name__", "")

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


REGISTRY: dict[str, Claim] = {}  # those that are loaded; `registered` has all


def _origin(measure) -> str:
    """The file that defines a claim and may redefine it; the cells of a notebook, files for Python, count as one."""
    code = getattr(measure, "__code__", None)
    return NOTEBOOK if code is None or measure.__module__ == NOTEBOOK else code.co_filename


def _place() -> tuple[str, int]:
    """File and line of the statement that registers a claim, outside this file and the factories."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename in (__file__, str(PACKAGE / "claims" / "laws.py")):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _first_word(text: str) -> str:
    return text.split()[0].strip(".,;:()") if text else ""


def claim(
    id: str,
    *,
    subject: Any,
    title: str = "",
    statement: str = "",
    source: str = "",
    kind: str = "",
    latex: str = "",
    bibtex: str = "",
    tight_where: str = "",
    proof: str = "",
    bound: Callable | None = None,
    mutants: Mapping[str, Any] | None = None,
    text: str = "",
    quote: str = "",
    see: tuple[str, ...] = (),
    certificate: str = "",
    measured_by: str = "",
    source_known: str = "",
    version: int = 1,
):
    r"""Register a claim: a decorator for the function that measures it.

    Parameters
    ----------
    id : str
        Topic and name, such as ``"qsgd.variance"``.
    subject : object
        The value of ``context.subject``.
    title, statement, source, kind : str
        A few words, for tables; one sentence; the source, with the theorem's number, or "derived"; and "identity",
        "equality", "tight", "upper", "lower" or "rate".  What is not given is taken from the docstring of ``bound``.
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
    text : {"", "in print", "quoted", "reading"}
        Not empty: the numbers refute the statement, and what holds instead is a separate claim, named in ``see``.  It
        says how the statement is known: its text was read; it is quoted by others or remembered; or it is one reading
        of a text that can be read in another way, too.
    quote : str
        The sentence as it stands in the source, in Markdown; needed for a statement in print.
    see : tuple of str
        Other claims: the correct reading, or those with the mutants that this bound is too loose to refute.
    certificate : str
        How the statement is secured, where the measurement does not show it: "composition" of lemmas, "semidefinite
        program", "conjecture".
    measured_by : str
        Who produced the numbers, where the measurement does not show it.
    source_known : {"read", "quoted", "remembered", "derived"}
        How well the source is known, where the table of the bibliography does not say it.
    version : int
        Increased whenever the statement changes, so that ``id@version`` can be cited.

    Returns
    -------
    function
        A decorator; what it returns is the :class:`Claim`.

    Raises
    ------
    ValueError
        If the id is taken, a word or the BibTeX key is unknown, something is neither given nor said by the bound, a
        statement in print has no quote, or there is neither a mutant nor a claim in ``see``.
    """
    said = described(bound) if bound is not None else {}
    title, statement = title or said.get("title", ""), statement or _sentence(said.get("statement", ""))
    source, kind = source or said.get("source", "").rstrip("."), kind or _first_word(said.get("kind", ""))
    for name, value in (("title", title), ("statement", statement), ("source", source)):
        if not value:
            raise ValueError(f"{name}: got none for {id!r}, allowed: a string, or a bound whose docstring has it")
    for name, value, allowed in (
        ("kind", kind, KINDS),
        ("certificate", certificate, ("", *CERTIFICATES)),
        ("source_known", source_known, ("", *KNOWLEDGE)),
        ("text", text, ("", *TEXTS)),
    ):
        if value not in allowed:
            raise ValueError(f"{name}: got {value!r}, allowed: {', '.join(filter(None, allowed))}")
    if bibtex and bibtex not in BIBTEX and not bibtex.lstrip().startswith("@"):
        raise ValueError(f"bibtex: got {bibtex!r}, allowed: a BibTeX entry or one of {', '.join(sorted(BIBTEX))}")
    if text == "in print" and not quote:
        raise ValueError(f"quote: got none for {id!r}, allowed: the sentence in print, or text='quoted' without it")
    if not mutants and not see:
        raise ValueError(f"mutants: got none for {id!r}, allowed: at least one, or see=(claims that have them,)")

    place = _place()

    def decorate(measure):
        known = REGISTRY.get(id) if Path(place[0]).is_relative_to(PACKAGE) else _loaded(id)
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
            text,
            quote,
            tuple(see),
            certificate,
            measured_by,
            source_known or ("derived" if source.startswith("derived") else known_source(bibtex)),
            version,
            place,
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
    return list(registered())


def registered() -> dict[str, Claim]:
    """All claims by their ids: those of the package by topic, then those from outside it."""
    from . import topics

    if topics.load():
        every = sorted(REGISTRY.values(), key=lambda known: topics.order(known.place[0]))
        REGISTRY.clear()
        REGISTRY.update((known.id, known) for known in every)
    return REGISTRY


def _loaded(id: str) -> Claim | None:
    """The claim with this id, whose topic is imported if it is not yet."""
    from . import topics

    if id not in REGISTRY:
        topics.load(id)
    return REGISTRY.get(id)


def find_claim(id: str) -> Claim:
    """The claim with this id.

    Parameters
    ----------
    id : str
        One of `list_claims`; or one with its version, ``qsgd.variance@1``.

    Returns
    -------
    Claim

    Raises
    ------
    ValueError
        If there is none; the message gives the nearest ids.  If its statement has another version.

    Examples
    --------
    >>> find_claim("qsgd.variance@1").id
    'qsgd.variance'
    """
    name, _, version = str(id).partition("@")
    known = _loaded(name) or registered().get(name)
    if known is not None:
        if version and version != str(known.version):
            raise ValueError(f"id: got {id!r}, allowed: {known.cite}, as the statement has changed")
        return known
    near = difflib.get_close_matches(str(id), REGISTRY, n=3, cutoff=0.4)
    near = near or [name for name in REGISTRY if name.split(".")[0] == str(id).split(".")[0]] or list(REGISTRY)[:5]
    raise ValueError(f"id: got {id!r}, allowed: a claim; the nearest are {', '.join(near)} (all: list_claims())")
