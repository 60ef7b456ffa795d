"""Methods written out on the command line: ``qsgd(s=3)``, ``topk(k=100)+memory``, ``natural+momentum(0.9)``.

A compressor comes first, then what is added to it by ``+``: a feedback rule, a server, local steps. Or a method stands
alone, with what it is made of: ``diana(qsgd(s=3), alpha=0.1)``, and for methods of clients also their feedback and
server, ``fedavg(topk(k=9), clients=8, local_steps=4, feedback=memory, server=outerstep(2.0))``. Names are those of the
classes, upper or lower case, ``local(8)`` stands for eight local steps a round, and ``step(0.5)`` for a constant step;
arguments are numbers, True, False, ``inf``, the letter ``k`` (a five-hundredth of the dimension), for quantizers the
code of their levels, ``qsgd(s=3, code=elias)``, for wrappers other compressors, ``bucketed(qsgd(s=7), 512)``, or laws
of the workers' times, ``asyncsgd(times=pareto(2.0))``, or, for servers, others and attacks: ``topk(k=9)+attacked(nnm(2,
median), alie, 2)``. A step, batch or average that is written stands in place of the common one: ``ef21(topk(k=9),
step=0.5, batch=8)``.
"""

from __future__ import annotations

import ast
import math
from typing import Any, NamedTuple

from ..core import require
from ..core.settings import field_types
from ..reporting.files import ConfigurationError, nearest

ALIASES = {
    "memory": "ErrorFeedback",
    "partial": "PartialErrorFeedback",
    "conef": "ContractiveErrorFeedback",
    "iconef": "ImprovedContractiveErrorFeedback",
    "linearsketch": "LinearSketchFeedback",
    "fullprecision": "Lossless",
    "lag": "CLAG",
    "scaffnew": "ProxSkip",
}


CLIENTS = "FedAvg FedProx SCAFFOLD"  # methods whose feedback and server are written as arguments
SERVERS = "Momentum Majority Projected OuterStep Adam LAMB"
# The servers that look at the message of each worker, and the one that an attack comes before.
ROBUST = "Median TrimmedMean GeometricMedian Krum MultiKrum NNM Bucketing CenteredClipping Attacked"
ATTACKS = "ALIE InnerProduct Mimic OneSided Scaling SignFlip"
SETTINGS = "Packed Elias RANS FixedTime Pareto ShiftedExponential"  # codes, and laws of the workers' times


class Written(NamedTuple):
    """What a written method has: a compressor, and the fields of the method that its other parts set.

    With the field ``local_steps`` it is a `LocalSGD`, otherwise a `ParallelSGD`; or else it is ``method``, of which
    ``given`` are the fields that were written.
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
    return ALIASES.get(first, first).lower() in _compressors() | _methods()


def written_method(name: str, d: int, k: int) -> Written:
    """The parts of a written method for vectors of length d.

    Parameters
    ----------
    name : str
    d : int
        Length of the vectors; ``rows`` and ``columns`` of compressors of matrices have the nearest to a square.
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
        raise ConfigurationError(f"method {name!r}: this cannot be read; write topk(k=100)+memory, say") from None
    parts: list[ast.expr] = []
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add):
        parts.insert(0, tree.right)
        tree = tree.left
    from ..methods.schedules import Constant

    compressors, rules, servers = _compressors(), _rules(), _servers()
    inner = compressors | rules | servers if _name_of(tree, name) in _named(CLIENTS) else compressors
    made = _make(tree, name, compressors | _methods(), inner, d, k)
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
    """What a written method begins with."""
    return sorted({*_compressors(), *_methods(), *ALIASES})


def _compressors() -> dict[str, type]:
    from ..compressors import registered

    return {cls.__name__.lower(): cls for cls in registered()}


def _methods() -> dict[str, type]:
    """The methods of a star that a compressor, or nothing but numbers, completes."""
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
    return ALIASES.get(lower, lower).lower()


def _make(node: ast.expr, whole: str, known: dict[str, type], inner: dict[str, type], d: int, k: int) -> Any:
    """The value of a node: an instance of a known class, of its arguments."""
    own = _name_of(node, whole)
    if own not in known:
        names = [*(cls.__name__ for cls in known.values()), *(a for a, c in ALIASES.items() if c.lower() in known)]
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
        from ..compressors.kernels.spectral import squarest

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
    return str(error).removeprefix(f"{cls.__name__}: ")


def _value(node: ast.expr, told: str, kind: str | None, whole: str, inner: dict[str, type], d: int, k: int) -> Any:
    """The value of an argument; ``told`` names it, and ``kind`` is the annotation of its field."""
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
