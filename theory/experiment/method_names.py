"""The catalogue of methods by name, methods from a user's file, and methods that are written out.

Methods of a user's Python file are selected by ``--methods my_file.py``.  A name such as ``qsgd-4`` or
``top-100-memory`` identifies a method completely, so that ``--methods`` spans an axis and a seed can be derived from
the name.

Any other compressor, feedback rule or server is written out on the command line: ``qsgd(s=3)``, ``topk(k=100)+memory``,
``natural+momentum(0.9)``.  A compressor comes first, then what is added to it by ``+``: a feedback rule, a server,
local steps.  Or a method is written with its parts as arguments: ``diana(qsgd(s=3), alpha=0.1)``, also with its server,
and for methods of clients with their feedback, ``fedavg(topk(k=9), clients=8, local_steps=4, feedback=memory,
server=outerstep(2.0))``. Names are those of the classes, upper or lower case, ``local(8)`` stands for eight local steps
a round, and ``step(0.5)`` for a constant step; arguments are numbers, True, False, ``inf``, the letter ``k`` (a
five-hundredth of the dimension), for quantizers the code of their levels, ``qsgd(s=3, code=elias)``, for wrappers other
compressors, ``bucketed(qsgd(s=7), 512)``, or laws of the workers' times, ``asyncsgd(times=pareto(2.0))``, or, for
servers, others and attacks: ``topk(k=9)+attacked(nnm(2, median), alie, 2)``. A step, batch or average that is written
replaces the common one: ``ef21(topk(k=9), step=0.5, batch=8)``.
"""

from __future__ import annotations

import ast
import functools
import math
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from ..core import require
from ..core.settings import field_types
from ..reporting.files import ConfigurationError, FileRefused, nearest, run_file

# --- Methods of a user's Python file ---------------------------------------------------------------------------------


def is_file(name: str) -> bool:
    """Whether a name is the path of a Python file, with or without the name of one of its methods."""
    return named_in(name)[0].endswith(".py")


def named_in(name: str) -> tuple[str, str]:
    """Path and method of ``my_file.py:mine``; the method is empty if none is named.

    Examples
    --------
    >>> named_in("own/my_file.py:mine"), named_in("my_file.py")
    (('own/my_file.py', 'mine'), ('my_file.py', ''))
    """
    path, colon, method = name.rpartition(":")
    return (path, method) if colon and path.endswith(".py") else (name, "")


@functools.cache
def _loaded(path: str) -> dict:
    try:
        module = run_file(path)
    except FileRefused as error:
        raise ConfigurationError(f"methods: {error}") from error
    return {name: value for name, value in vars(module).items() if not name.startswith("_") and _is_method(value)}


def _is_method(value: Any) -> bool:
    return hasattr(value, "round") and hasattr(value, "domain") and not isinstance(value, type)


def file_methods(path: str) -> list[str]:
    """The names of the methods of a file, each with its path: ``my_file.py:mine``.

    Raises
    ------
    ConfigurationError
        If there is no such file, or it has no method.
    """
    found = [f"{path}:{name}" for name in _loaded(os.path.abspath(path))]
    if not found:
        raise ConfigurationError(
            f"methods: {Path(path).name} has no method; a method is a value of the file, "
            "such as mine = th.ParallelSGD(th.TopK(10), step=th.Constant(0.1), feedback=th.ErrorFeedback())"
        )
    return found


def method_of_file(name: str) -> Any:
    """The method ``my_file.py:mine``."""
    path, method = named_in(name)
    known = _loaded(os.path.abspath(path))
    if method not in known:
        raise ConfigurationError(f"methods: {path} has no method {method!r}; it has {', '.join(known) or 'none'}")
    return known[method]


# --- The catalogue of methods by name --------------------------------------------------------------------------------

FLAGSHIP = ("sgd", "sgd-sparse", "qsgd-2", "qsgd-4", "qsgd-8", "top-k-memory", "rand-k-memory", "top-k")


class Alias(NamedTuple):
    """A short name: its method, its title and a description.

    ``n`` is the number in the name, the value of the letter k for k; ``levels`` is 2^(n-1) - 1.
    """

    written: str
    title: str
    about: str


ALIASES = {
    "sgd": Alias("identity", "SGD, dense", "full precision, every coordinate as 32 bits"),
    "sgd-sparse": Alias(
        "identity(sparse=True)",
        "SGD, sparse",
        "without loss: index and value of the non-zeros, the l2 term applied locally",
    ),
    "qsgd-B": Alias(
        "bucketed(qsgd(s={levels}), {bucket})",
        "QSGD, {n} bits",
        "QSGD with B bits a coordinate (sign, 2^(B-1) - 1 levels), a 2-norm a bucket",
    ),
    "qsgd-B-inf": Alias(
        "bucketed(qsgd(s={levels}, norm=inf), {bucket})",
        "QSGD, {n} bits, max",
        "the same with the maximum norm of each bucket",
    ),
    "top-K": Alias(
        "topk(k={n})",
        "top-{n}, no memory",
        "the K largest entries, the rest is lost (biased, no memory)",
    ),
    "top-K-memory": Alias(
        "topk(k={n})+memory",
        "top-{n} + memory",
        "the K largest entries of step times gradient plus memory",
    ),
    "rand-K": Alias(
        "randk(k={n}, unbiased=True)",
        "rand-{n}, no memory",
        "K random entries times d/K (unbiased, no memory)",
    ),
    "rand-K-memory": Alias(
        "randk(k={n})+memory",
        "rand-{n} + memory",
        "K random entries of step times gradient plus memory",
    ),
}


class UnknownName(ValueError):
    """An unknown name; the message gives the nearest known ones."""


class Entry(NamedTuple):
    """A method of the catalogue: its name, family and number (bits or k; None if the family has none).

    ``step`` is the text of its step, as in ``sgd(step=0.5)``.
    """

    name: str
    family: str
    number: int | str | None
    step: str = ""

    @property
    def memory(self) -> bool:
        """Whether workers have an error memory."""
        return self.family.endswith("-memory")


def find(name: str) -> Entry:
    """Find the entry of a name.

    Raises
    ------
    UnknownName
        If there is none, or its number is not allowed.

    Examples
    --------
    >>> find("qsgd-4")
    Entry(name='qsgd-4', family='qsgd-B', number=4, step='')
    >>> find("qsgd4")
    Traceback (most recent call last):
        ...
    theory.experiment.method_names.UnknownName: unknown method 'qsgd4': did you mean qsgd-4 ...?
    """
    short, step = _step_in(name)
    for family in ALIASES:
        match = re.fullmatch(family.replace("B", r"(\d+)").replace("K", r"(\d+|k)"), short)
        if match is None:
            continue
        text = match[1] if match.groups() else None
        number = int(text) if text is not None and text != "k" else text
        if "B" in family and isinstance(number, int) and not 2 <= number <= 16:
            raise UnknownName(f"method {name!r}: got {number} bits, allowed: 2 to 16")
        if isinstance(number, int) and not 0 < number < 2**31:
            raise UnknownName(f"method {name!r}: got K = {number}, allowed: 1 to the dimension of the data")
        if step:
            written_method(f"identity+step({step})", d=1, k=1)  # refused here if it is no step
        return Entry(name, family, number, step)
    if is_file(name):
        method_of_file(name)
        return Entry(name, "file", None)
    if is_written(name):
        made = written_method(name, d=2**40, k=1)  # whatever does not depend on the data is refused here
        added = [part.strip().lower() for part in name.split("+")[1:]]
        added = [part for part in added if not part.startswith("step(")]
        kind = "-memory" if added == ["memory"] else "-other" if added or made.method is not None else ""
        return Entry(name, f"written{kind}", None)
    first, known = name.partition("+")[0].partition("(")[0], (*FLAGSHIP, "qsgd-4-inf", "rand-k")
    shown = f"{', '.join(known)}, and classes with arguments, such as ef21(topk(k=94))"
    raise UnknownName(f"unknown method {name!r}: {nearest(first, [*known, *class_names()], shown)}")


def _step_in(name: str) -> tuple[str, str]:
    """A short name and its step: ``sgd(step=0.5)`` is sgd with the step 0.5."""
    match = re.fullmatch(r"([^()]+)\(step=([^()]*)\)", name.replace(" ", ""))
    return (match[1], match[2]) if match else (name, "")


def title(entry: Entry, k: int) -> str:
    """Name of a method in tables and legends."""
    if entry.family == "file":
        return named_in(entry.name)[1]
    if entry.family not in ALIASES:
        return entry.name
    return ALIASES[entry.family].title.format(n=_number(entry, k)) + (f", step {entry.step}" if entry.step else "")


def parts(entry: Entry, d: int, k: int, bucket: int) -> Written:
    """The parts of an entry's method that is not from a file; ``k`` is the value of the letter k in its name."""
    name = entry.name
    if entry.family in ALIASES:
        n = _number(entry, k)
        levels = 2 ** (n - 1) - 1 if "B" in entry.family else None
        name = ALIASES[entry.family].written.format(n=n, levels=levels, bucket=bucket)
        name += f"+step({entry.step})" if entry.step else ""
    return written_method(name, d, k)


def _number(entry: Entry, k: int) -> int:
    return entry.number if isinstance(entry.number, int) else k


# --- Methods written out on the command line -------------------------------------------------------------------------

NAME_ALIASES = {
    "memory": "ErrorFeedback",
    "partial": "PartialErrorFeedback",
    "conef": "ContractiveErrorFeedback",
    "iconef": "ImprovedContractiveErrorFeedback",
    "linearsketch": "LinearSketchFeedback",
    "fullprecision": "Lossless",
    "lag": "CLAG",
    "scaffnew": "ProxSkip",
}


CLIENTS = "FedAvg FedProx SCAFFOLD"  # methods whose feedback is written as an argument

SERVERS = "Momentum Majority Projected OuterStep Adam LAMB"
# The servers that look at the message of each worker, and the one that an attack comes before.
ROBUST = "Median TrimmedMean GeometricMedian Krum MultiKrum NNM Bucketing CenteredClipping Attacked"

ATTACKS = "ALIE InnerProduct Mimic OneSided Scaling SignFlip"

SETTINGS = "Packed Elias RANS FixedTime Pareto ShiftedExponential"  # codes, and laws of the workers' times


class Written(NamedTuple):
    """The parts of a written method: a compressor, and the fields of the method that its other parts set.

    With the field ``local_steps`` it is a `LocalSGD`, otherwise a `ParallelSGD`; or it is ``method``, with ``given``
    listing the fields that were written.
    """

    compressor: Any
    fields: dict
    method: Any = None
    given: tuple = ()


def split_names(text: str) -> list[str]:
    """The names in a list separated by commas, except for those within parentheses.

    Examples
    --------
    >>> split_names("sgd, bucketed(qsgd(s=7), 512), topk(k=3)+memory")
    ['sgd', 'bucketed(qsgd(s=7), 512)', 'topk(k=3)+memory']
    """
    found, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            found.append(text[start:place])
            start = place + 1
    return [name.strip() for name in (*found, text[start:]) if name.strip()]


def is_written(name: str) -> bool:
    """Whether a name is that of a class, with or without arguments, and not of the catalogue.

    Examples
    --------
    >>> is_written("topk(k=3)+memory"), is_written("natural"), is_written("qsgd4")
    (True, True, False)
    """
    first = _without_hyphens(name).partition("+")[0].partition("(")[0].strip().lower()
    return NAME_ALIASES.get(first, first).lower() in _compressors() | _methods()


def written_method(name: str, d: int, k: int) -> Written:
    """The parts of a written method for vectors of length d.

    Parameters
    ----------
    name : str
    d : int
        Length of the vectors; ``rows`` and ``columns`` of compressors of matrices are as close to a square as possible.
    k : int
        The value of the letter k.

    Raises
    ------
    ConfigurationError
        If it cannot be read, a name is unknown, or a class refuses its arguments.

    Examples
    --------
    >>> written_method("topk(k=3) + memory + momentum(0.9)", 100, 1)
    Written(compressor=TopK(k=3), fields={'feedback': ErrorFeedback(), 'server': Momentum(beta=0.9, nesterov=False)},
            method=None, given=())
    """
    try:
        tree = ast.parse(_without_hyphens(name), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # the last three: NUL, or nested too deeply
        raise ConfigurationError(f"method {name!r}: this cannot be read; write it like topk(k=100)+memory") from None
    parts: list[ast.expr] = []
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add):
        parts.insert(0, tree.right)
        tree = tree.left
    from ..methods.schedules import Constant

    compressors, rules, servers = _compressors(), _rules(), _servers()
    known = compressors | _methods()
    has_server = "server" in getattr(known.get(_name_of(tree, name)), "_fields", ())
    made = _make(tree, name, known, compressors | rules | servers if has_server else compressors, d, k)
    if hasattr(made, "round"):
        require(not parts, "methods", name, f"{type(made).__name__} alone, without +", ConfigurationError)
        given = _given(tree, type(made))
        if getattr(made, "own_step", False) and "step" not in given:
            example = f"{type(made).__name__.lower()}(step=0.001)"
            raise ConfigurationError(f"method {name!r}: got no step, allowed: one of its own, such as {example}")
        return Written(made.compressor, {}, made, given)
    fields: dict = {}
    for part in parts:
        if _name_of(part, name) == "local":
            require("local_steps" not in fields, "methods", name, "one local(h) for each method", ConfigurationError)
            fields["local_steps"] = _local_steps(part, name)
            continue
        if _name_of(part, name) == "step":
            require("step" not in fields, "methods", name, "one step for each method", ConfigurationError)
            fields["step"] = _make(part, name, {"step": Constant}, {}, d, k)
            continue
        field = "server" if _name_of(part, name) in servers else "feedback"
        require(field not in fields, "methods", name, f"one {field} for each method", ConfigurationError)
        within = compressors if field == "feedback" else compressors | servers | _named(f"{ATTACKS} Mean")
        fields[field] = _make(part, name, rules | servers, within, d, k)
        if _name_of(part, name) in _named(ROBUST):
            fields["exchange"] = "gather"  # a sum of messages shows none of them
    return Written(made, fields)


def _given(tree: ast.expr, cls: Any) -> tuple[str, ...]:
    """The fields of a method that were written."""
    if not isinstance(tree, ast.Call):
        return ()
    return (*cls._fields[: len(tree.args)], *(str(word.arg) for word in tree.keywords))


def _without_hyphens(name: str) -> str:
    """A method's name as its class has it: ``ef21-sgdm(topk(k=9))`` is ``ef21sgdm(topk(k=9))``."""
    first, bracket, rest = name.strip().partition("(")
    plain = first.replace("-", "").strip()
    return plain + bracket + rest if plain.lower() in _methods() else name.strip()


def _local_steps(part: ast.expr, whole: str) -> int:
    arguments = part.args if isinstance(part, ast.Call) else []
    number = arguments[0].value if len(arguments) == 1 and isinstance(arguments[0], ast.Constant) else None
    alone = isinstance(part, ast.Call) and not part.keywords
    good = alone and isinstance(number, int) and not isinstance(number, bool) and number >= 1
    require(good, "methods", whole, "local(h) with an integer h, at least 1", ConfigurationError)
    return int(number)  # type: ignore[arg-type]


def class_names() -> list[str]:
    """The names with which a written method can begin."""
    return sorted({*_compressors(), *_methods(), *NAME_ALIASES})


def _compressors() -> dict[str, type]:
    from ..compressors import registered

    return {cls.__name__.lower(): cls for cls in registered()}


def _methods() -> dict[str, type]:
    """The methods of a star that need only a compressor, or only numbers."""
    from .. import methods

    known = (getattr(methods, name) for name in methods.__all__)
    complete = (cls for cls in known if hasattr(cls, "round") and not {"graph", "feedback"} & set(cls._fields))
    return {cls.__name__.lower(): cls for cls in complete} | _named(CLIENTS)


def _rules() -> dict[str, type]:
    from .. import methods

    return _named(" ".join(name for name in methods.__all__ if name.endswith("Feedback")))


def _servers() -> dict[str, type]:
    return _named(f"{SERVERS} {ROBUST}")


def _named(names: str) -> dict[str, type]:
    """The classes with these names."""
    from .. import compressors, methods

    return {name.lower(): getattr(methods, name, None) or getattr(compressors, name) for name in names.split()}


def _name_of(node: ast.expr, whole: str) -> str:
    called = node.func if isinstance(node, ast.Call) else node
    if not isinstance(called, ast.Name):
        raise ConfigurationError(f"method {whole!r}: got {ast.unparse(node)}, allowed: names such as topk(k=100)")
    lower = called.id.lower()
    return NAME_ALIASES.get(lower, lower).lower()


def _make(node: ast.expr, whole: str, known: dict[str, type], inner: dict[str, type], d: int, k: int) -> Any:
    """The value of a node: an instance of a known class, of its arguments."""
    own = _name_of(node, whole)
    if own not in known:
        names = [*(cls.__name__ for cls in known.values()), *(a for a, c in NAME_ALIASES.items() if c.lower() in known)]
        raise ConfigurationError(f"method {whole!r}: unknown name {own!r}: {nearest(own, sorted(names))}")
    cls: Any = known[own]
    arguments = node.args if isinstance(node, ast.Call) else []
    keywords = node.keywords if isinstance(node, ast.Call) else []
    kinds = field_types(cls)
    told = lambda field: f"method {whole!r}: {cls.__name__}: {field}"  # noqa: E731
    placed = zip(arguments, [*kinds, *["arguments"] * len(arguments)], strict=False)
    values = [_value(part, told(field), kinds.get(field), whole, inner, d, k) for part, field in placed]
    named = {
        str(word.arg): _value(word.value, told(word.arg), kinds.get(str(word.arg)), whole, inner, d, k)
        for word in keywords
    }
    if {"rows", "columns"} <= set(getattr(cls, "_fields", ())) and not values and not {"rows", "columns"} & set(named):
        from ..compressors.kernels.linear_algebra import squarest

        if own != "countsketch":
            named["rows"], named["columns"] = squarest(d)
    if hasattr(cls, "round"):
        from ..methods.schedules import Constant

        if "step" not in cls._fields[: len(values)]:
            named.setdefault("step", Constant(1.0))  # until the experiment has one
    try:
        return cls(*values, **named)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"method {whole!r}: {cls.__name__}: {_without(cls, error)}") from None


def _without(cls: type, error: Exception) -> str:
    said = str(error).removeprefix(f"{cls.__name__}: ")
    lacking = re.search(r"missing \d+ required positional arguments?: (.*)", said)
    return f"got no {lacking[1]}, allowed: a value of each argument that has no default" if lacking else said


def _value(node: ast.expr, told: str, kind: str | None, whole: str, inner: dict[str, type], d: int, k: int) -> Any:
    """The value of an argument; ``told`` names the argument, and ``kind`` is the annotation of its field."""
    if isinstance(node, ast.Name) and node.id in ("k", "inf"):
        return k if node.id == "k" else math.inf
    first = kind.split(" | ")[0] if kind is not None else ""
    if isinstance(node, ast.Name) and first == "str":
        return node.id  # such as by_label
    is_number = first in ("int", "float", "bool")
    if isinstance(node, (ast.Name, ast.Call)) and not is_number:
        return _make(node, whole, inner | _named(SETTINGS), inner, d, k)
    try:
        return ast.literal_eval(node)
    except (ValueError, MemoryError, RecursionError):
        allowed = "a number, inf, or the letter k" if is_number else "numbers and names"
        raise ConfigurationError(f"{told}: got {ast.unparse(node)}, allowed: {allowed}") from None
