"""Listings of the package by kind (methods, compressors, problems, ...) and by subject, and a search.

No listing is typed by hand.  Names come from the subpackages and the registry of compressors, descriptions and sources
from docstrings, and theorems from the formulas of `theory.bounds` that are named in docstrings, closed forms and
theoretical step sizes.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..core import require
from ..core.subjects import SUBJECTS, subject_of
from ..reporting.progress import line_width

INDENT = 22  # of the text beside a name
FOUND = 20  # entries that a search returns
STEM = 5  # letters of a word that have to agree, so that "reduction" finds "reduced"
SENTENCE = re.compile(r"(?<=[a-z0-9)`][.;:]) (?=[A-Z])")
YEAR = re.compile(r"\b(?:19|20)\d\d\b")


class Entry(NamedTuple):
    """An entry of a listing.

    Attributes
    ----------
    name : str
        As in ``theory.name``.
    kind : str
        One of `KINDS`, or for a search also "claim" or "bound".
    what : str
        The first line of its docstring.
    source : str
        The papers that its docstring cites, or those of its theorems.
    theorems : tuple of str
        Functions of `theory.bounds` about it.
    ranks : bool
        Whether it runs on MPI ranks.
    subject : str
        One of `theory.core.subjects.SUBJECTS`, or "".
    """

    name: str
    kind: str
    what: str
    source: str
    theorems: tuple[str, ...]
    ranks: bool
    subject: str

    def __str__(self) -> str:
        more = [f"bounds.{name}" for name in self.theorems[:3]] + ["..."] * (len(self.theorems) > 3)
        told = "; ".join(part for part in (self.source, ", ".join(more)) if part)
        told += "" if self.ranks else "; not on ranks"
        lines = textwrap.wrap(self.what, line_width() - INDENT) + textwrap.wrap(told.strip("; "), line_width() - INDENT)
        first = f"{self.name:<{INDENT - 1}} " if len(self.name) < INDENT else f"{self.name}\n{'':<{INDENT}}"
        return first + f"\n{'':<{INDENT}}".join(lines)


class Listing(tuple):
    """Entries; it prints a paragraph for each, under the titles of their subjects where there are several."""

    def __repr__(self) -> str:
        groups = {title: [one for one in self if one.subject == key] for key, title in {**SUBJECTS, "": "More"}.items()}
        groups = {title: found for title, found in groups.items() if found}
        if len(groups) < 2:
            return "\n".join(map(str, self)) or "nothing"
        heads = {title: textwrap.fill(f"{title}:", line_width()) for title in groups}
        return "\n\n".join("\n".join([heads[title], *map(str, found)]) for title, found in groups.items())


# --- the entries ------------------------------------------------------------------------------------------------------


def _public(*subpackages: str) -> Iterator[tuple[str, Any]]:
    """The public names of these subpackages, with their objects."""
    import theory

    for name in dir(theory):
        thing = getattr(theory, name)
        if getattr(thing, "__module__", "").split(".")[1:2] in [[name] for name in subpackages]:
            yield name, thing


def _returns(thing: Any) -> str:
    return "" if inspect.isclass(thing) else str(inspect.signature(thing).return_annotation)


def _methods() -> Iterator[tuple[str, Any]]:
    """Classes of methods, functions that make one, and functions that run their own method."""
    every = list(_public("methods", "cluster"))
    classes = {name for name, thing in every if inspect.isclass(thing) and hasattr(thing, "round")}
    for name, thing in every:
        runs = _returns(thing) == "Result" and name != "run"
        if name in classes or _returns(thing) in classes or runs:
            yield name, thing


def _having(*functions: str) -> Callable[[], Iterator[tuple[str, Any]]]:
    """The classes of methods with one of these functions."""

    def found() -> Iterator[tuple[str, Any]]:
        for name, thing in _public("methods"):
            if (
                inspect.isclass(thing)
                and not hasattr(thing, "round")
                and any(callable(getattr(thing, f, None)) for f in functions)
            ):
                yield name, thing

    return found


def _compressors() -> Iterator[tuple[str, Any]]:
    from .. import compressors

    for cls in compressors.registered():
        if cls.__module__.startswith(f"{__package__.partition('.')[0]}.") or cls.__name__ not in dir(compressors):
            yield cls.__name__, cls


def _problems() -> Iterator[tuple[str, Any]]:
    from .. import problems
    from ..problems.base import dimension

    for name, thing in _public("problems"):
        made = getattr(problems, _returns(thing), None) if not inspect.isclass(thing) else None
        if made is not None and dimension.implements(made):
            yield name, thing


KINDS: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "methods": _methods,
    "compressors": _compressors,
    "problems": _problems,
    "graphs": _having("edges", "weights"),
    "servers": _having("update"),
    "feedback_rules": _having("load", "as_conef"),
}


# --- their descriptions -----------------------------------------------------------------------------------------------


def _words(thing: Any) -> str:
    """The docstring without its examples."""
    return (inspect.getdoc(thing) or "").partition("\nExamples\n---")[0]


def _named_in(function: Any) -> set[str]:
    """The names and texts in the code of a function."""
    code = getattr(inspect.unwrap(getattr(function, "py_func", function)), "__code__", None)
    return set() if code is None else {*code.co_names, *(text for text in code.co_consts if isinstance(text, str))}


@functools.cache
def _theorems(thing: Any) -> tuple[str, ...]:
    """Formulas that the docstring names, and for a class those of its closed forms and its theoretical step size."""
    from .. import bounds
    from ..compressors.closed_forms import delta, omega
    from ..methods.theory_steps import theory_step

    found = dict.fromkeys(re.findall(r"bounds\.(\w+)", _words(thing)))
    if inspect.isclass(thing):
        for generic in (omega, delta, theory_step):
            own = generic.dispatch(thing)
            if own is not generic.dispatch(object):
                found |= dict.fromkeys(sorted(_named_in(own)))
        found |= dict.fromkeys(text for text in getattr(thing, "theorem", ()) if isinstance(text, str))
    return tuple(name for name in found if callable(getattr(bounds, name, None)) and name in bounds.__all__)


def _source(thing: Any) -> str:
    """The papers that the docstring cites; otherwise those of the first theorem."""
    from .. import bounds
    from ..bounds.bibliography import cited
    from ..bounds.closed_form import theorem

    text = re.sub(r":\w+:`([^`]+)`", r"\1", " ".join(_words(thing).split("\nNotes\n-----\n")[-1].split()))
    found = [sentence for sentence in SENTENCE.split(text) if YEAR.search(sentence)]
    sources = [theorem(getattr(bounds, name)).source for name in _theorems(thing)]
    found = found or [cited(source) for source in sources if "[" in source][:1]
    return "; ".join(text.rstrip(".;:") for text in found)


def _on_ranks(thing: Any) -> bool:
    """Whether it runs on ranks: as a part of `run`, or with its own communicator."""
    runs = not inspect.isclass(thing) and _returns(thing) == "Result"
    return not runs or "comm" in inspect.signature(thing).parameters


def _entry(kind: str, name: str, thing: Any) -> Entry:
    what = _words(thing).strip().split("\n\n")[0].replace("\n", " ").replace("`", "")
    return Entry(name, kind, what, _source(thing), _theorems(thing), _on_ranks(thing), subject_of(thing))


@functools.cache
def entries(kind: str) -> Listing:
    """The entries of a kind, by name; formulas in their order."""
    if kind == "bounds":
        return Listing(_formulas())
    return Listing(_entry(kind, name, thing) for name, thing in sorted(dict(KINDS[kind]()).items()))


def _formulas() -> Iterator[Entry]:
    """The formulas of `theory.bounds`, in their order."""
    from .. import bounds
    from ..bounds.closed_form import theorem

    for name in bounds.__all__:
        function = getattr(bounds, name)
        if inspect.isfunction(function) or hasattr(function, "__wrapped__"):
            title = theorem(function).title
            yield Entry(f"bounds.{name}", "bound", title, "", (), True, subject_of(function))


def listing(kind: str | None = None, subject: str | None = None) -> Listing:
    """The entries of a kind, about a subject, or both.

    Parameters
    ----------
    kind : {"methods", "compressors", "problems", "graphs", "servers", "feedback_rules", "bounds"}, optional
        ``theory.methods()``, ``theory.compressors()``, ``theory.problems()`` and ``theory.bounds()`` are short forms.
    subject : str, optional
        "sgd", "batches", "quantizers", "sparsifiers", "memory", "differences", "local", "graphs", "adaptive",
        "robust", "privacy", "delay" or "cost".

    Returns
    -------
    Listing
        A tuple of entries with ``name``, ``what``, ``source``, ``theorems``, ``ranks`` and ``subject``; it can be
        printed.

    Raises
    ------
    ValueError
        If the kind or the subject is unknown, or neither is given.

    Examples
    --------
    >>> import theory as th
    >>> [graph.name for graph in th.listing("graphs")]
    ['Complete', 'Edges', 'Hypercube', 'MixingMatrix', 'Ring', 'Star', 'Torus']
    >>> next(c for c in th.listing("compressors") if c.name == "QSGD").theorems
    ('qsgd_inf_variance', 'qsgd_variance')
    >>> [entry.name for entry in th.listing(subject="privacy")][:2]
    ['Private', 'bounds.clipped_fixed_point']
    """
    every = (*KINDS, "bounds")
    require(kind in every or (kind is None and subject is not None), "kind", kind, ", ".join(every))
    require(subject is None or subject in SUBJECTS, "subject", subject, ", ".join(SUBJECTS))
    found = [entry for one in ([kind] if kind else every) for entry in entries(one)]
    return Listing(entry for entry in found if subject in (None, entry.subject))


def graphs() -> Listing:
    """The graphs for methods whose workers exchange messages with neighbours, as `listing` returns them.

    Returns
    -------
    Listing

    Examples
    --------
    >>> import theory as th
    >>> [graph.name for graph in th.graphs()][:3]
    ['Complete', 'Edges', 'Hypercube']
    """
    return listing("graphs")


def servers() -> Listing:
    """The rules that move the model by the received messages, as `listing` returns them.

    Returns
    -------
    Listing

    Examples
    --------
    >>> import theory as th
    >>> [server.name for server in th.servers()][:2]
    ['Adam', 'Attacked']
    """
    return listing("servers")


# --- search -----------------------------------------------------------------------------------------------------------


@functools.cache
def _texts() -> tuple[tuple[Entry, str], ...]:
    """Every entry, claim and bound, with the text that a search looks at."""
    import theory

    from .. import bounds
    from ..bounds.closed_form import theorem
    from ..claims import find_claim, list_claims
    from ..compressors import registered

    things = {cls.__name__: cls for cls in registered()}
    found = [
        (entry, _words(things.get(entry.name) or getattr(theory, entry.name)))
        for kind in KINDS
        for entry in entries(kind)
    ]
    for id in list_claims():
        claim = find_claim(id)
        found.append((Entry(id, "claim", claim.title, claim.cited, (), False, ""), f"{claim.title} {claim.statement}"))
    for entry in entries("bounds"):
        told = theorem(getattr(bounds, entry.name.partition(".")[2]))
        found.append((entry, f"{told.title} {told.setting} {told.statement}"))
    return tuple(found)


def search(words: str) -> Listing:
    """Find methods, compressors, problems, graphs, servers, rules, claims and bounds by words of their description.

    Parameters
    ----------
    words : str
        All words must occur, up to their endings.

    Returns
    -------
    Listing
        At most 20 entries; first those with the words in their name or first line.

    Raises
    ------
    ValueError
        If ``words`` is empty.

    Examples
    --------
    >>> import theory as th
    >>> "qsvrg" in [entry.name for entry in th.search("variance reduction")]
    True
    """
    stems = [word.lower()[:STEM] for word in re.findall(r"\w+", words)] if isinstance(words, str) else []
    require(stems, "words", words, "some words, such as 'variance reduction'")
    ranked = []
    for place, (entry, text) in enumerate(_texts()):
        head, body = f"{entry.name} {entry.what}".lower(), f"{entry.name} {entry.what} {text} {entry.source}".lower()
        if all(re.search(rf"(?:\b|_){stem}", body) for stem in stems):
            near = sum(bool(re.search(rf"(?:\b|_){stem}", head)) for stem in stems)
            apart = not re.search(r"\w*\W+".join(stems), body)
            ranked.append((-near, apart, entry.kind in ("claim", "bound"), place, entry))
    return Listing(entry for *_, entry in sorted(ranked)[:FOUND])
