"""Numbers by key, from a record, a claim or a closed form, for sentences whose numbers must agree with these.

A template has keys in braces, with a format::

    {study:mem-sgd-rcv1.two.top-10.gap.last.mean:n}            a value of a study's record
    {study:mem-sgd-rcv1.the-figures-2.top-10.f-f:n}            a cell of a table of its report
    {study:mem-sgd-rcv1#top-as-sgd.times:.3f}                  a number that a statement names: its ``values``
    {study:largest-batch#held-out.holding:n}                   how many of its ``trials`` hold
    {claim:qsgd.variance#d-8192.measured:.3g}                  a check of a claim, by words of its label
    {bound:qsgd_variance(8192, 7):.4g}                         a closed form
    {100 * study:... / study:...:.0f}                          arithmetic of these

The parts of a key are slugs: a name, or the value of a field that distinguishes a row from the others.  A key has as
many parts as are needed to select one row.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..studies.shared.configuration import slug

KEY = r"(?:study|claim):[a-z0-9-]+(?:[.#=][a-z0-9-]+)*|bound:\w+\([^()]*\)"
TEMPLATE = re.compile(r"\{([^{}]*\b(?:study|claim|bound):[^{}]*):([^{}:]*)\}")
NUMBER = re.compile(r"(?<![\w.])[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?")
OPERATIONS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
CONSTANTS = (1, 2, 100, 1000)  # for percentages, complements and milliseconds
WHOLE: dict[str, Callable] = {
    "mean": np.mean,
    "least": np.min,
    "most": np.max,
    "first": lambda values: np.asarray(values)[..., 0],
    "last": lambda values: np.asarray(values)[..., -1],
}


class KeyRefused(ValueError):
    """A key that names nothing or several things, or an invalid template."""


class Records:
    """The sources of keys: records of studies, results of claims, closed forms; each is read when a key needs it.

    Parameters
    ----------
    figures : path-like
        The folder of the figures, which has their records.
    verification : callable, optional
        From a claim's id to its `Verification`; by default the records in ``docs/claims.jsonl``, judged now.
    """

    def __init__(self, figures: Any, verification: Callable | None = None) -> None:
        self.figures, self._verification = Path(figures), verification
        self._claims: dict[str, Any] = {}
        self.study, self.claim = functools.cache(self._study), functools.cache(self._claim)
        self.values = functools.cache(self._values)

    def _study(self, name: str) -> Any:
        from ..reporting.json_values import read_record, record_path
        from ..studies import report

        path = record_path(self.figures, f"study-{name}")
        if not path.is_file():
            raise KeyRefused(f"study:{name}: there is no record of it in {path.parent}")
        record = read_record(path)
        study = report(record.how["study"], record.found, name)
        return study._replace(rows={**record.found, **study.rows})

    def _claim(self, id: str) -> Any:
        from ..claims import find_claim

        try:
            known = find_claim(id).id
        except ValueError as error:
            raise KeyRefused(f"claim:{id}: {error}") from None
        if self._verification is not None:
            return self._verification(known)
        from ..claims.records import read_records
        from ..claims.verification import judged

        self._claims = self._claims or read_records(self.figures.parent / "docs" / "claims.jsonl")
        if known not in self._claims:
            raise KeyRefused(f"claim:{id}: docs/claims.jsonl has no record of it; write it: make claims")
        return judged(find_claim(known), self._claims[known])

    @staticmethod
    def claim_of(key: str) -> str:
        """The id of the claim in a key, which is evidence or ends with a field."""
        from ..claims import list_claims

        owner = key.partition(":")[2].partition("#")[0]
        return owner if "#" in key or owner in list_claims() else owner.rpartition(".")[0]

    def check(self, id: str, label: str, key: str) -> Any:
        """The headline of a claim, or its check with these words in its label."""
        checks = self.claim(id).checks
        wanted = [c for c in checks if f"-{label}-" in f"-{slug(c.label)}-"] if label else checks[:1]
        wanted = [c for c in wanted if slug(c.label) == label] or wanted
        if len(wanted) != 1:
            labels = ", ".join(slug(c.label) for c in wanted or checks)
            raise KeyRefused(f"{key}: {len(wanted)} checks have {label!r}, of {labels}")
        return wanted[0]

    def _values(self, name: str) -> dict[str, Any]:
        """The record of a study and the tables of its report, by their slugs."""
        study = self.study(name)
        tables = [*study.tables, *study.ticks]
        cells = {t.title: [dict(zip(t.head, row, strict=True)) for row in t.rows] for t in tables}
        return {slug(key): value for key, value in {**cells, **study.rows}.items()}


# --- keys ---------------------------------------------------------------------------------------------------------


def look_up(key: str, records: Records) -> Any:
    """The value of a key: a number, or the text of a cell."""
    kind, _, rest = key.partition(":")
    if kind == "bound":
        return _closed_form(rest)
    owner, _, part = rest.partition("#")
    if kind == "claim":
        field = rest.rpartition(".")[2]
        label = part.rpartition(".")[0]
        return _field(records.check(records.claim_of(key), label, key), field, key)
    name, *parts = owner.split(".")
    if not part:
        return _scalar(_walk(records.values(name), parts, key), key)
    id, *parts = part.split(".")
    return _scalar(_walk(statement(records.study(name), id).by_name, parts, key), key)


def statement(study: Any, id: str) -> Any:
    """The statement of a study with this id.

    Raises
    ------
    KeyRefused
        If there is none.
    """
    found = {said.id: said for said in study.statements}
    if id not in found:
        raise KeyRefused(f"study:{study.name}#{id}: its statements are {', '.join(found)}")
    return found[id]


def _closed_form(call: str) -> Any:
    from .. import bounds

    tree = ast.parse(call, mode="eval").body
    if not (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in dir(bounds)):
        raise KeyRefused(f"bound:{call}: got no call of a function of theory.bounds")
    try:
        given = [ast.literal_eval(value) for value in tree.args]
        named = {str(pair.arg): ast.literal_eval(pair.value) for pair in tree.keywords}
        return float(getattr(bounds, tree.func.id)(*given, **named))
    except (ValueError, TypeError) as error:
        raise KeyRefused(f"bound:{call}: {error}") from None


def _field(check: Any, field: str, key: str) -> float:
    """A number of a check."""
    found = check.interval
    values = {"measured": found.estimate, "low": found.low, "high": found.high, "predicted": float(check.predicted)}
    if field == "ratio":
        return found.estimate / values["predicted"]
    if field not in values:
        raise KeyRefused(f"{key}: got the field {field!r}, allowed: {', '.join(values)}, ratio")
    return values[field]


def _fields(row: Any) -> dict[str, Any]:
    """A row by its fields; empty if the value is not a row."""
    if hasattr(row, "_asdict"):
        row = row._asdict()
    return {slug(name): value for name, value in row.items()} if isinstance(row, Mapping) else {}


def _walk(node: Any, parts: list[str], key: str) -> Any:
    """Follow the parts of a key into records, rows, arrays and the numbers of a statement."""
    if not parts:
        return node
    part, *rest = parts
    if isinstance(node, (str, int, float)):
        raise KeyRefused(f"{key}: there is no {part!r} in {node!r}")
    fields = _fields(node)
    name = _named(part, fields)
    if name is not None:
        return _walk(fields[name], rest, key)
    if fields:
        raise KeyRefused(f"{key}: there is no {part!r}, but {', '.join(fields)}")
    if part == "count":
        return len(node)
    if part in WHOLE:
        return _walk(WHOLE[part](np.asarray(node, float)), rest, key)
    if part.isdigit() and not (isinstance(node, list) and node and _fields(node[0])):
        if int(part) >= len(node):
            raise KeyRefused(f"{key}: there are {len(node)} values, not {int(part) + 1}")
        return _walk(node[int(part)], rest, key)
    return _row(list(node), parts, key)


def _named(part: str, names: Any) -> str | None:
    """The name that this part of a key means: itself, or the only name that begins with it."""
    begun = [name for name in names if name.startswith(f"{part}-")]
    return part if part in names else begun[0] if len(begun) == 1 else None


def _row(rows: list, parts: list[str], key: str) -> Any:
    """Select rows by the values of their fields until one is left; the next part is a field of that row."""
    for used, part in enumerate(parts):
        field, after = _named(part, _names(rows[0])), parts[used + 1 :]
        if field is not None and len(rows) == 1:
            return _walk(_fields(rows[0]) or rows[0], parts[used:], key)
        if field is not None and after[:1] and after[0] in (*WHOLE, "count"):
            return _walk([_fields(row)[field] for row in rows], after, key)
        name, _, wanted = part.rpartition("=")
        values = [[slug(v) for k, v in _cells(row) if name in ("", k)] for row in rows]
        whole = _named(wanted, {value for row in values for value in row})
        if whole is None:
            there = dict.fromkeys(slug(v) for row in rows for _, v in _cells(row) if isinstance(v, str))
            raise KeyRefused(f"{key}: no row has {part!r}, but {', '.join(list(there)[:40])}")
        rows = [row for row, here in zip(rows, values, strict=True) if whole in here]
    raise KeyRefused(f"{key}: {len(rows)} rows are left; a field of one is needed: {', '.join(_names(rows[0]))}")


def _names(row: Any) -> list[str]:
    return list(_fields(row)) or [str(k) for k in range(len(row))]


def _cells(row: Any) -> list[tuple[str, Any]]:
    """Names and values of a row, including those of rows within it."""
    cells = list(_fields(row).items()) or [(str(k), value) for k, value in enumerate(row)]
    return [pair for name, v in cells for pair in ([(name, v)] if isinstance(v, (str, int, float)) else [])]


def _scalar(value: Any, key: str) -> Any:
    """A number, or a string that may contain one."""
    if isinstance(value, str):
        return value
    if np.ndim(value) or not isinstance(value, (int, float, np.generic, np.ndarray)):
        names = ", ".join(_fields(value)) or f"{WHOLE.keys()}"
        raise KeyRefused(f"{key}: got {type(value).__name__}, allowed: a number; continue with {names}")
    return float(value)


# --- templates ----------------------------------------------------------------------------------------------------


def keys_of(text: str) -> list[str]:
    """The keys of a template."""
    return [key for expression, _ in TEMPLATE.findall(text) for key in re.findall(KEY, expression)]


def fill(text: str, records: Records) -> str:
    """The text with the value of each expression in its place.

    Raises
    ------
    KeyRefused
        For a key that names nothing, or an expression with other operations than arithmetic.
    """
    return TEMPLATE.sub(lambda match: _show(evaluate(match[1], records), match[2], match[0]), text)


def evaluate(expression: str, records: Records) -> Any:
    """The value of an expression: keys, and the four operations on them."""
    keys: list[str] = []

    def placed(match):
        keys.append(match[0])
        return f"_{len(keys) - 1}"

    try:
        tree = ast.parse(re.sub(KEY, placed, expression).strip(), mode="eval").body
    except SyntaxError:
        raise KeyRefused(f"{{{expression}}}: this is not a key, or arithmetic of keys") from None

    def value(node):
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
            return OPERATIONS[type(node.op)](_number(value(node.left)), _number(value(node.right)))
        if isinstance(node, ast.Constant) and node.value in CONSTANTS:
            return node.value
        if isinstance(node, ast.Name) and node.id[1:].isdigit():
            return look_up(keys[int(node.id[1:])], records)
        raise KeyRefused(f"{{{expression}}}: allowed: keys, + - * / and the numbers {CONSTANTS}")

    return value(tree)


def _number(value: Any) -> float:
    """The number, or the first number in a string."""
    if not isinstance(value, str):
        return value
    found = NUMBER.search(value)
    if found is None:
        raise KeyRefused(f"{value!r}: there is no number in it")
    return float(found[0].replace(",", ""))


def _show(value: Any, form: str, whole: str) -> str:
    """A value as text: ``n`` is the usual format of a study's tables, ``s`` the text itself."""
    from ..plots.appearance import number

    if form == "s":
        return str(value)
    if form == "n":
        return number(_number(value))
    try:
        return format(_number(value), form)
    except ValueError:
        raise KeyRefused(f"{whole}: {form!r} is not the format of a number") from None
