r"""Claims: a statement with a source, a bound, a measurement, and mutants that the measurement must refute.

A claim is one decorated function.  It measures ``context.subject``, the subject of the statement (a factory of a
compressor, a method, a formula), and yields checks of measured against predicted numbers::

    @claim(
        "sign.contraction",
        of=bounds.sign_density,
        subject=scaled_sign,
        mutants={"scale forgotten": np.sign},
    )
    def _(context):
        v = context.normal(100)
        error = np.sum((context.subject(v) - v) ** 2) / (v @ v)
        yield identity("error / norm", error, 1 - np.abs(v).sum() ** 2 / (v.size * (v @ v)))

The statement of a claim (title, statement, kind, source, formula in LaTeX, where it is attained, a proof) is the record
of the formula that ``of`` names, in `theory.bounds`; a consequence, such as the slope of a bound, is a part of it. Only
a claim without a formula has these fields itself.
``verify(id)`` measures the subject, applies the rule of each check, and does the same to every mutant.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import linecache
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..bounds.bibliography import KNOWLEDGE, cited, entries, keys
from ..bounds.bibliography import source_known as known_as
from ..bounds.closed_form import KINDS, Theorem, parts, theorem
from ..reporting.scale import FAILS
from .checks import Check, Context
from .display import claim_card
from .judgement import EXPECTED

REFUTED = ("in print", "quoted", "reading", "question")
CERTIFICATES = ("identity", "exact witness", "semidefinite program", "measured", "conjecture")
PACKAGE = Path(__file__).resolve().parents[1]
WORD = re.compile("^(?!(beta|delta|eta|gamma|kappa|lambda|mu|omega|rho|sigma|sum|tau|theta) )(a|[a-z]{2,})[ ,:]")
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
    setting: str = ""
    latex: str = ""
    attained: str = ""
    proof: str = ""
    of: Callable | None = None
    mutants: Mapping[str, Any] = field(default_factory=dict)
    refuted: str = ""
    quote: str = ""
    see: tuple[str, ...] = ()
    certificate: str = ""
    lemmas: tuple[str, ...] = ()
    measured_by: str = ""
    repeatable: bool = True
    source_known: str = ""
    version: int = 1
    fixed: Mapping[str, str] = field(default_factory=dict)
    entry: str = ""
    place: tuple[str, int] = ("", 0)
    origin: str = ""

    def __repr__(self) -> str:
        return f"<claim {self.id}: {self.title}; {self.cited}>"

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
        return (FAILS,) if self.refuted else EXPECTED

    @property
    def formula(self) -> str:
        """Name of the function that computes what is predicted; empty if it is not one of `theory.bounds`."""
        return getattr(getattr(self.of, "func", self.of), "__name__", "")

    @property
    def cited(self) -> str:
        """The source in words, with the theorem's number."""
        return cited(self.source)

    @property
    def bibtex(self) -> list[str]:
        """BibTeX entries of the sources."""
        own = [self.entry.strip()] if self.entry else []
        return own + [entries()[key] for key in dict.fromkeys(keys(self.source))]

    @property
    def outside(self) -> bool:
        """Whether it was made outside the package, in a file or a notebook."""
        return not Path(self.origin).resolve().is_relative_to(PACKAGE)

    @property
    def file(self) -> str:
        """The file of a claim from outside the package; empty for claims of the package or a notebook."""
        path = Path(self.origin).resolve()
        return str(path) if self.outside and path.is_file() else ""

    def signature(self, annotated: bool = True) -> str:
        """How to call the formula: its module, its parameters, and those fixed by the claim."""
        if self.of is None:
            return ""
        function = getattr(self.of, "func", self.of)  # a partial fixes the form
        names = inspect.signature(function)
        if not annotated:
            bare = [p.replace(annotation=p.empty) for p in names.parameters.values()]
            names = names.replace(parameters=bare, return_annotation=names.empty)
        home = "" if function.__module__ == NOTEBOOK else f"{function.__module__}."
        if home.startswith("theory.bounds."):
            home = "theory.bounds."
        given = "".join(f", here {k}={v!r}" for k, v in getattr(self.of, "keywords", {}).items())
        return f"{home}{function.__name__}{names}{given}"


REGISTRY: dict[str, Claim] = {}  # those that are loaded; `registered` has all


def _place() -> tuple[tuple[str, int], str]:
    """File and line of the statement that registers a claim, which is not in this file, nor in a factory; its origin.

    That is the file that may redefine the claim; the cells of a notebook, files for Python, count as one.
    """
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename in (__file__, str(PACKAGE / "claims" / "factories.py")):
        frame = frame.f_back
    if frame is None:
        return ("", 0), ""
    file, line = frame.f_code.co_filename, frame.f_lineno
    origin = NOTEBOOK if frame.f_globals.get("__name__") == NOTEBOOK else file
    while frame is not None and frame.f_code.co_filename == file:
        line, frame = frame.f_lineno, frame.f_back
    return (file, line), origin


OWN = ("title", "statement", "kind", "latex", "attained", "proof", "source", "source_known")


def claim(
    id: str,
    *,
    subject: Any,
    of: Callable | None = None,
    part: str = "",
    title: str = "",
    statement: str = "",
    kind: str = "",
    latex: str = "",
    attained: str = "",
    proof: str = "",
    source: str = "",
    source_known: str = "",
    bibtex: str = "",
    mutants: Mapping[str, Any] | None = None,
    refuted: str = "",
    quote: str = "",
    see: tuple[str, ...] = (),
    certificate: str = "",
    lemmas: tuple[str, ...] = (),
    measured_by: str = "",
    repeatable: bool = True,
    version: int = 1,
    fixed: Mapping[str, str] | None = None,
) -> Callable[[Callable[[Context], Iterable[Check | str]]], Claim]:
    r"""Register a claim: a decorator for the function that measures it.

    Parameters
    ----------
    id : str
        Topic and name, such as ``"qsgd.variance"``.
    subject : object
        The value of ``context.subject``.
    of : function
        The closed form that the claim is about, from :mod:`theory.bounds`, or a `functools.partial` that fixes its
        form; or your own, for a claim outside the package. Its docstring is the record of the statement.
    part : str
        The part of that record that is claimed, such as a consequence; by default the one that has the claim's id as
        its name, or the id without its topic, and if there is none, the form that ``of`` has.
    title, statement, kind, latex, attained, proof : str
        For a claim without ``of``: a few words, for tables; one sentence; "identity", "tight", "upper", "lower" or
        "rate"; the formula; where a bound is attained; a short sketch.
    source : str
        For a claim without ``of``: keys of the bibliography in brackets with the theorem's number,
        ``"[alistarh2017qsgd], Lemma 3.1"``, or "derived".
    source_known : {"read", "quoted", "remembered", "derived"}
        For a claim without ``of``: how well the source is known, if the bibliography does not state it.
    bibtex : str
        A BibTeX entry for a source that is not in the bibliography.
    mutants : dict
        Name to subject: deliberately wrong versions, all of which the claim must refute.
    refuted : {"", "in print", "quoted", "reading", "question"}
        If not empty, the numbers refute the statement, and the correct statement is a separate claim, named in ``see``.
        The value tells how the statement is known: its text was read; it is quoted by others or remembered; it is one
        of several readings of a text; or it is our own question, which nobody has claimed.
    quote : str
        The verbatim sentence of the source, in Markdown; required for a statement in print and for a reading.
    see : tuple of str
        Other claims: the correct reading, or those with the mutants that this bound is too loose to refute.
    certificate : str
        How the statement is secured, if the measurement does not show it: "semidefinite program", "conjecture".
    lemmas : tuple of str
        Claims from which the measurement recomputes the theorem, all that its proof uses: a composition.
    measured_by : str
        The origin of the numbers, if the measurement does not show it.
    repeatable : bool
        Whether the same seed gives the same numbers; False if threads race.
    version : int
        Increased whenever the statement changes, so that ``id@version`` can be cited.
    fixed : dict
        Arguments of the formula that have one value in all claims, with the reason; all others take at least two, so
        that a wrong exponent is detected.

    Returns
    -------
    function
        A decorator, which returns the :class:`Claim`.

    Raises
    ------
    ValueError
        If the id is taken, a word or a key is unknown, a field is neither given nor in the record or is repeated from
        it, a statement in print or a reading has no quote, or there is neither a mutant nor a claim in ``see``.
    """
    own = dict(zip(OWN, (title, statement, kind, latex, attained, proof, source, source_known), strict=True))
    facts = _facts(id, of, part, own)
    for name, value, allowed in (
        ("kind", facts["kind"], KINDS),
        ("certificate", certificate, ("", *CERTIFICATES)),
        ("source_known", facts["source_known"], tuple(KNOWLEDGE)),
        ("refuted", refuted, ("", *REFUTED)),
    ):
        if value not in allowed:
            raise ValueError(f"{name}: got {value!r}, allowed: {', '.join(filter(None, allowed))}")
    for key in keys(facts["source"]):
        if key not in entries():
            raise ValueError(f"source: got [{key}], allowed: a key of the bibliography")
    if bibtex and bibtex not in entries() and not bibtex.lstrip().startswith("@"):
        raise ValueError(f"bibtex: got {bibtex!r}, allowed: a BibTeX entry; a source of the bibliography is [its key]")
    if refuted in ("in print", "reading") and not quote:
        raise ValueError(f"quote: got none for {id!r}, allowed: the sentence in print, or refuted='quoted' without it")
    if not mutants and not see:
        raise ValueError(f"mutants: got none for {id!r}, allowed: at least one, or see=(claims that have them,)")

    place, origin = _place()

    def decorate(measure: Callable[[Context], Iterable[Check | str]]) -> Claim:
        known = REGISTRY.get(id) if Path(place[0]).is_relative_to(PACKAGE) else _loaded(id)
        if known is not None and known.origin != origin:
            raise ValueError(f"id: got {id!r}, allowed: a name that is not taken")
        REGISTRY[id] = Claim(
            id=id,
            measure=measure,
            subject=subject,
            of=of,
            mutants=dict(mutants or {}),
            refuted=refuted,
            quote=quote,
            see=tuple(see),
            certificate=certificate,
            lemmas=tuple(lemmas),
            measured_by=measured_by,
            repeatable=repeatable,
            version=version,
            fixed=dict(fixed or {}),
            entry=bibtex if bibtex.lstrip().startswith("@") else "",
            place=place,
            origin=origin,
            **facts,
        )
        return REGISTRY[id]

    return decorate


def _facts(id: str, of: Callable | None, part: str, own: Mapping[str, str]) -> dict[str, str]:
    """What a claim states: the record of its formula, or what it says itself."""
    if of is not None and not part:
        part = next((name for name in (id, id.partition(".")[2]) if name in parts(of)), "")
    record = theorem(of, part) if of is not None else Theorem("")
    if record.statement and hasattr(getattr(of, "func", of), "theorem"):
        for name in OWN:
            if own[name]:
                raise ValueError(f"{name}: got one for {id!r}, allowed: none; {record.formula} has a record")
    given = {"known" if name == "source_known" else name: text for name, text in own.items() if text}
    record = record._replace(**given)  # of a claim without a formula, or with a plain function
    facts = {name: getattr(record, name) for name in ("setting", *OWN[:-1])}
    # a symbol at the beginning, such as f or mu, stays as it is
    facts |= {"source": facts["source"].rstrip("."), "statement": WORD.sub(lambda m: m[0].title(), facts["statement"])}
    for name in ("title", "statement", "source"):
        if not facts[name]:
            raise ValueError(f"{name}: got none for {id!r}, allowed: a string, or a formula whose record has it")
    return facts | {"source_known": record.known or known_as(facts["source"])}


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
    """All claims by their ids: those of the package by subject, then those from outside it."""
    from .package_files import load_package, order

    if load_package():
        every = sorted(REGISTRY.values(), key=lambda known: order(known.place[0]))
        REGISTRY.clear()
        REGISTRY.update((known.id, known) for known in every)
    return REGISTRY


def _loaded(id: str) -> Claim | None:
    """The claim with this id, whose file is imported if it is not yet."""
    from .package_files import load_package

    if id not in REGISTRY:
        load_package(id)
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
