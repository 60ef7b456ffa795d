"""Closed forms: their checked arguments, calls that can be observed, and the record of the theorem behind each.

The record of a theorem is parsed from the fields of its formula's docstring.  The docstring is then completed for the
reader.  After its first line, it has the fields ``Setting``, ``Statement``, ``Kind``, ``Latex``, ``Attained``,
``Proof``, ``Source`` and ``Known``.  A formula may have variants: forms that an argument selects, or further
statements.  The fields of a variant stand together, and each has its name in parentheses: ``Statement (paper): ...``.
A field without parentheses applies to all variants that have none of their own.  The reader sees one table of the
variants.  A source is named by its key in the bibliography, ``[alistarh2017qsgd], Lemma 3.1``.
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

COLUMNS = {"Statement": "Setting", "Formula": "", "Kind": "Attained", "Source": "Known"}  # and what follows in a cell

SHOWN = ("Setting", "Statement", "Kind", "Formula", "Attained", "Proof", "Source", "Known")

CODE = re.compile(r"``.+?``|`[^`]+`")

LINE = re.compile(r"(\S.{0,109}|\S+)(?: +|$)")

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
    found = {"": {"Title": head.split("\n", 1)[0].rstrip(".")}}
    for part, said in _read(head).items():
        plain = {field: re.sub(r":\w+:`([^`]+)`", r"\1", text) for field, text in said.items()}
        found[part] = found.get(part, {}) | plain
    return found


def _read(head: str) -> dict[str, dict[str, str]]:
    """The fields in a text, by part, as they are written."""
    found: dict[str, dict[str, str]] = {}
    marks = list(PART.finditer(head))
    for mark, following in zip(marks, [*marks[1:], None], strict=False):
        text = " ".join(head[mark.end() : following.start() if following else len(head)].split())
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
    """The docstring in numpydoc's form: fields as paragraphs, a table of variants, all arguments with their domains."""
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
    head = "\n\n".join([PART.split(head, maxsplit=1)[0].strip(), *_paragraphs(_read(head), _forms(function))])
    some = bool(domain.arguments)
    listed = "\n".join(_parameters(domain, entries)) if some else "None\n    It has no arguments."
    kind = function.__annotations__.get("return", "float")
    kind = kind.__name__ if isinstance(kind, type) else str(kind).replace("np.", "numpy.")
    return (
        "\n\n".join(
            [
                head,
                sections.pop("Parameters", f"Parameters\n----------\n{listed}"),
                sections.pop("Returns", f"Returns\n-------\n{kind}"),
                sections.pop("Raises", RAISED if some else "Raises\n------\nTypeError\n    If an argument is given."),
                *sections.values(),
            ]
        )
        + "\n"
    )


def _wrapped(text: str, indent: str = "") -> str:
    """The text in lines, none of which breaks code or a formula."""
    whole = CODE.sub(lambda found: found[0].replace(" ", "\0"), text)
    return ("\n" + indent).join(LINE.findall(whole)).replace("\0", " ")


def _paragraphs(said: dict[str, dict[str, str]], forms: set[str]) -> list[str]:
    """What all variants share, one table of the variants, and their proofs."""
    for fields in said.values():
        fields.update(Formula=f":math:`{fields['Latex']}`" if "Latex" in fields else "")
    shared = said.pop("", {})
    told = [_wrapped(f"{field}: {shared[field]}") for field in SHOWN if shared.get(field)]
    names = {part: f"``{part}``" if part in forms else said[part].get("Title", part).rstrip(".") for part in said}
    rows = [["variant", *(column.lower() for column in COLUMNS)]]
    for part, fields in said.items():
        more = {field: f"{field}: {fields[field]}" for field in COLUMNS.values() if fields.get(field)}
        rows.append([names[part], *(f"{fields.get(a, '')} {more.get(b, '')}".strip() for a, b in COLUMNS.items())])
    filled = [column for column in zip(*rows, strict=True) if any(column[1:])]
    cells = [(cell, "  " if i else "* ") for row in zip(*filled, strict=True) for i, cell in enumerate(row)]
    lines = [f"   {mark}- {_wrapped(cell, ' ' * 7)}".rstrip() for cell, mark in cells]
    table = "\n".join([".. list-table::", "   :header-rows: 1", "", *lines])
    proofs = [_wrapped(f"Proof ({names[part]}): {said[part]['Proof']}") for part in said if "Proof" in said[part]]
    return [*told, table, *proofs] if said else told


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

    vars(closed_form).update(domain=allowed, theorem=functools.partial(theorem, function))
    closed_form.__doc__ = completed(closed_form, allowed)
    return cast(F, closed_form)
