"""Closed forms: their checked arguments, calls that can be observed, and the record of the theorem behind each.

The record of a theorem is parsed from the fields of its formula's docstring, which is then completed for the reader.  A
docstring has, after its first line, the fields ``Setting``, ``Statement``, ``Kind``, ``Latex``, ``Attained``,
``Proof``, ``Source`` and ``Known``, each a paragraph.  A formula with several forms says in parentheses which one a
field is about: ``Statement (paper): ...``; a field without parentheses is about all that have none of their own.  A
source is named by its key in the bibliography, ``[alistarh2017qsgd], Lemma 3.1``.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar, cast, overload

from .domains import SYMBOLS, Domain, domain

# --- The record of a theorem -----------------------------------------------------------------------------------------

FIELDS = ("Title", "Setting", "Statement", "Kind", "Latex", "Attained", "Proof", "Source", "Known")

KINDS = ("identity", "tight", "upper", "lower", "rate")

RAISED = "Raises\n------\nValueError\n    If an argument is outside its domain."

PART = re.compile(rf"^(?P<field>{'|'.join(FIELDS)})(?: \((?P<parts>[^():]*)\))?:(?: |$)", re.MULTILINE)

ENTRY = re.compile(
    r"^(?P<names>[A-Za-z]\w*(?:, [A-Za-z]\w*)*)(?: \((?P<type>[^:]*)\))?:(?: (?P<text>.*(?:\n    .*)*))?$", re.MULTILINE
)

SECTION = re.compile(r"\n(?=[A-Z]\w+\n-{4,}\n)")


class Theorem(NamedTuple):
    """The theorem behind a formula, or behind one of its forms.

    Attributes
    ----------
    formula : str
        Name of the function.
    part : str
        The form; empty if there is only one.
    title, setting, statement : str
        A title of a few words; the assumptions; the statement, in one sentence or more.
    kind : str
        One of `KINDS`; empty for a formula without a statement, such as a step size.
    latex : str
        The formula.
    attained : str
        Where a tight bound is attained.
    proof : str
        A short sketch of the proof.
    source : str
        Keys of the bibliography in brackets, with the theorem's number; or "derived" with a derivation.
    known : str
        How well the source is known, if that differs from the bibliography's entry.
    """

    formula: str
    part: str = ""
    title: str = ""
    setting: str = ""
    statement: str = ""
    kind: str = ""
    latex: str = ""
    attained: str = ""
    proof: str = ""
    source: str = ""
    known: str = ""


def _head(function: Callable[..., Any]) -> str:
    """The docstring without parameters, other sections and examples."""
    text = inspect.cleandoc(function.__doc__ or "").split("\n\n>>>")[0]
    text = SECTION.split(text)[0]
    names = set(inspect.signature(function).parameters)
    first = next((f.start() for f in ENTRY.finditer(text) if set(f["names"].split(", ")) <= names), len(text))
    return text[:first]


@functools.cache
def _fields(function: Callable[..., Any]) -> dict[str, dict[str, str]]:
    """The fields of a docstring, by part; the title has the part ""."""
    head = _head(function)
    found: dict[str, dict[str, str]] = {"": {"Title": head.split("\n", 1)[0].rstrip(".")}}
    marks = list(PART.finditer(head))
    for mark, following in zip(marks, [*marks[1:], None], strict=False):
        text = " ".join(head[mark.end() : following.start() if following else len(head)].split())
        text = re.sub(r":\w+:`([^`]+)`", r"\1", text)
        for part in (mark["parts"] or "").split(", "):
            found.setdefault(part, {})[mark["field"]] = text
    return found


def parts(function: Callable[..., Any]) -> list[str]:
    """The forms for which a docstring has separate fields."""
    return [part for part in _fields(inspect.unwrap(getattr(function, "func", function))) if part]


def theorem(of: Callable[..., Any], part: str = "") -> Theorem:
    """The record of a formula.

    Parameters
    ----------
    of : callable
        A closed form, or a `functools.partial` of one that fixes its form.
    part : str
        The form; by default the one that the partial fixes, or else the default one.

    Returns
    -------
    Theorem

    Raises
    ------
    ValueError
        If the docstring has no fields for this part.

    Examples
    --------
    >>> from theory import bounds
    >>> theorem(bounds.qsgd_variance, "paper").kind
    'upper'
    """
    function = inspect.unwrap(getattr(of, "func", of))
    fields = _fields(function)
    if not part:
        defaults = {name: p.default for name, p in inspect.signature(function).parameters.items()}
        words = [str(word) for word in {**defaults, **getattr(of, "keywords", {})}.values()]
        part = next((word for word in words if word and word in fields), "")
    if part not in fields:
        raise ValueError(f"part: got {part!r}, allowed: {', '.join(map(repr, parts(function))) or 'none'}")
    shared = fields[""]
    if part and "Statement" in fields[part] and part not in _forms(of):  # another statement has a formula of its own
        shared = {name: text for name, text in shared.items() if name not in ("Latex", "Attained", "Proof")}
    said = {field.lower(): text for field, text in {**shared, **fields[part]}.items()}
    said["kind"] = said.get("kind", "").split(" ")[0].strip(".,;:")
    said["title"] = said["title"].rstrip(".")
    return Theorem(function.__name__, part, **{name: said.get(name, "") for name in Theorem._fields[2:]})


def _forms(of: Callable[..., Any]) -> set[str]:
    """The words that an argument of the formula may be: its forms."""
    domain: Domain | None = getattr(getattr(of, "func", of), "domain", None)
    conditions = [one for argument in domain.arguments for one in argument.conditions] if domain else []
    return {word for one in conditions for word in one.words}


# --- the docstring that a reader sees ---------------------------------------------------------------------------------


def completed(function: Callable[..., Any], domain: Domain) -> str:
    """The docstring in numpydoc's form: fields as paragraphs, and all arguments with their domains."""
    text = re.sub(r"\n\n(?=>>>)", "\n\nExamples\n--------\n", inspect.cleandoc(function.__doc__ or ""), count=1)
    head, *rest = SECTION.split(text)
    sections = {s.split("\n", 1)[0]: s.strip() for s in rest}
    names, entries, kept, last = {a.name for a in domain.arguments}, {}, [], 0
    for found in ENTRY.finditer(head):
        group = found["names"].split(", ")
        if set(group) <= names:
            entries.update(dict.fromkeys(group, (found["names"], found["type"], found["text"] or "")))
            kept.append(head[last : found.start()])
            last = found.end() + 1
    head = "".join([*kept, head[last:]]).strip()
    head = re.sub(r"^(Latex[^:]*): (.*(?:\n(?![A-Z][a-z]+[ (:]|\n).*)*)", _math, head, flags=re.MULTILINE)
    some = bool(domain.arguments)
    listed = "\n".join(_parameters(domain, entries)) if some else "None\n    It has no arguments."
    kind = function.__annotations__.get("return", "float")
    kind = kind.__name__ if isinstance(kind, type) else str(kind).replace("np.", "numpy.")
    return (
        "\n\n".join(
            [
                re.sub(r"\n{3,}", "\n\n", PART.sub(lambda mark: f"\n\n{mark[0]}", head)),
                sections.pop("Parameters", f"Parameters\n----------\n{listed}"),
                sections.pop("Returns", f"Returns\n-------\n{kind}"),
                sections.pop("Raises", RAISED if some else "Raises\n------\nTypeError\n    If an argument is given."),
                *sections.values(),
            ]
        )
        + "\n"
    )


def _math(found: re.Match) -> str:
    return f"{found[1]}: :math:`{' '.join(found[2].split())}`"


def _parameters(domain: Domain, entries: dict[str, tuple[str, str | None, str]]) -> list[str]:
    """The entries of all arguments in numpydoc's form: what each means, and its domain."""
    lines, done = [], set()
    for argument in domain.arguments:
        group, kind, text = entries.get(argument.name, (argument.name, None, ""))
        if group in done:
            continue
        done.add(group)
        if not text and argument.name in SYMBOLS:
            text = SYMBOLS[argument.name].meaning
        said = argument.said() if group == argument.name else ""
        meaning = f"{text.rstrip('.')}, {said[:1].lower()}{said[1:]}" if text and said else text or said
        lines.append(f"{group} : {kind or argument.kind.replace('ArrayLike', 'array_like') or 'array_like'}")
        lines += [f"    {meaning if meaning.endswith('.') else f'{meaning}.'}"] if meaning else []
    return lines


# --- What all closed forms share -------------------------------------------------------------------------------------

F = TypeVar("F", bound=Callable[..., Any])

Watch = Callable[[str, tuple[Any, ...], dict[str, Any], Any], Any]  # of a call: its name, arguments and value

_WATCHES: list[Watch] = []  # of those who watch at the moment


def told(name: str, arguments: tuple[Any, ...], named: dict[str, Any], value: Any) -> Any:
    """The value of a call of a formula, after all active observers have seen it."""
    for watch in _WATCHES:
        value = watch(name, arguments, named, value)
    return value


@contextlib.contextmanager
def watched_calls(watch: Watch) -> Iterator[None]:
    """Pass each call of a closed form to a function, wherever the call is made.

    Parameters
    ----------
    watch : callable
        Called with the formula's name, its positional arguments, its named arguments and the value; its result replaces
        the value of the call.

    Examples
    --------
    >>> from theory import bounds
    >>> with watched_calls(lambda name, arguments, named, value: 2.0 * value):
    ...     bounds.rand_k_variance(10, 5)
    2.0
    """
    _WATCHES.append(watch)
    try:
        yield
    finally:
        _WATCHES.pop()


@contextlib.contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """Count the calls of closed forms, wherever they are made.

    Yields
    ------
    collections.Counter
        Number of calls by the name of the formula, up to date until the context ends.

    Examples
    --------
    >>> from theory import bounds
    >>> with counted_calls() as calls:
    ...     found = bounds.rand_k_variance(10, 5)
    >>> dict(calls)
    {'rand_k_variance': 1}
    """
    calls = Counter[str]()

    def counted(name: str, arguments: tuple[Any, ...], named: dict[str, Any], value: Any) -> Any:
        calls[name] += 1
        return value

    with watched_calls(counted):
        yield calls


@overload
def formula(given: F) -> F: ...


@overload
def formula(given: str = ..., *more: str) -> Callable[[F], F]: ...


def formula(given: Any = "", *more: str) -> Any:
    """Make a function a closed form: check its arguments, complete its docstring, and let its calls be observed.

    Parameters
    ----------
    given, *more : str
        Conditions on the arguments, such as ``"0 < step <= 1 / lipschitz"``, in addition to those of the common
        symbols.

    Returns
    -------
    function
        A decorator; or, without conditions, the closed form.

    Examples
    --------
    >>> @formula("half >= 1")
    ... def twice(half: float) -> float:
    ...     return 2.0 * half
    >>> twice(0.5)
    Traceback (most recent call last):
        ...
    ValueError: half: got 0.5, allowed: a number, at least 1
    """
    if callable(given):
        return _closed_form(given, ())
    return functools.partial(_closed_form, conditions=tuple(filter(None, (given, *more))))


def _closed_form(function: F, conditions: tuple[str, ...]) -> F:
    name, allowed = function.__name__, domain(function, conditions)
    check = allowed.check

    @functools.wraps(function)
    def closed_form(*arguments: Any, **named: Any) -> Any:
        given = check(arguments, named)
        found = function(*arguments, **named) if given is None else function(*given.args, **given.kwargs)
        found = float(found) if isinstance(found, float) else found  # a Python float, not one of NumPy's
        return told(name, arguments, named, found)

    closed_form.__doc__ = completed(function, allowed)
    vars(closed_form).update(domain=allowed, theorem=functools.partial(theorem, function))
    return cast(F, closed_form)
