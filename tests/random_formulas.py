"""Wrong formulas drawn at random: is each noticed, or is it disclosed that it would not be?

    python tests/random_formulas.py --seed 20261122 --count 40

One place in the source of a function of `theory.bounds` is changed: a sign, a factor, an exponent, a summand, a scale,
min for max, N - 1 for N.  The claims whose record says that they call the function are measured again meanwhile.  It is

- *noticed*, if one of them ends with an error or does not hold;
- *disclosed*, if no claim is about a formula that uses the function, or if all numbers that changed are upper bounds
  that became larger or lower bounds that became smaller, which are weaker statements and still true;
- *neither*.

What ends in a TypeError or IndexError is no formula, and is drawn again.  The draw depends on the seed and the sources.
"""

from __future__ import annotations
import __future__

import argparse
import ast
import copy
import functools
import importlib
import inspect
import math
import random
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import theory.bounds
from theory.claims import find_claim
from theory.claims.checks import EFFORTS, Context, Measurement
from theory.claims.judgement import EXPECTED, judge, overall
from theory.claims.records import ClaimRecord, read_records

INFRASTRUCTURE = ("closed_form", "domains", "theorems", "symbols", "bibliography")
SAID = ("require", "positive", "non_negative", "whole", "number", "below_frontier")  # of domains, not of formulas
HIT = "__hit__"
ROUNDING = 1e-9  # numbers as small as this guard against rounding, or are 0: without them a formula is the same


class Wrong(NamedTuple):
    """A function with one place changed: the kind of change, the place, and what stands there instead."""

    function: FunctionType
    kind: str
    old: ast.expr
    new: ast.expr

    def __str__(self) -> str:
        name = f"{self.function.__module__.removeprefix('theory.bounds.')}.{self.function.__name__}"
        return f"{name}: {ast.unparse(self.new)} for {ast.unparse(self.old)} ({self.kind})"


# --- sources ----------------------------------------------------------------------------------------------------------


@functools.cache
def definition(function: FunctionType) -> ast.FunctionDef | None:
    """The definition of a function, without its decorators; None for a closure."""
    if function.__closure__:
        return None
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    if not isinstance(tree, ast.FunctionDef):
        return None
    tree.decorator_list = []
    return tree


def picks(node: ast.AST) -> bool:
    """Whether it is a minimum or maximum of several arguments."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("min", "max")
        and len(node.args) > 1
        and not node.keywords
        and not any(isinstance(one, ast.Starred) for one in node.args)
    )


def compiled(function: FunctionType, tree: ast.FunctionDef) -> CodeType:
    """The code of another definition of a function, in its place."""
    original, copied = function.__code__, ast.Module([tree], [])
    flags = original.co_flags & __future__.annotations.compiler_flag
    space = compile(ast.fix_missing_locations(copied), original.co_filename, "exec", flags, dont_inherit=True)
    code = next(one for one in space.co_consts if isinstance(one, CodeType) and one.co_name == original.co_name)
    return code.replace(co_firstlineno=original.co_firstlineno)


def used_by(function: FunctionType) -> set[str]:
    """Names of the functions of `theory.bounds` that call a function, directly or not, and its own."""
    found, before = {function.__name__}, set[str]()
    while found != before:
        before = set(found)
        found |= {one.__name__ for one in every_function() if before & set(one.__code__.co_names)}
    return found


# --- places and changes -----------------------------------------------------------------------------------------------


@functools.cache
def every_function() -> tuple[FunctionType, ...]:
    """All functions of `theory.bounds`, in the order of their names."""
    found = {}
    folder = Path(theory.bounds.__file__).parent
    for path in sorted(folder.rglob("[a-z]*.py")):
        if path.stem in INFRASTRUCTURE:
            continue
        name = ".".join(path.relative_to(folder).with_suffix("").parts)
        space = importlib.import_module(f"theory.bounds.{name}")
        for value in vars(space).values():
            plain = inspect.unwrap(value) if callable(value) else None
            if isinstance(plain, FunctionType) and plain.__module__ == space.__name__:
                found[plain.__module__, plain.__name__] = plain
    return tuple(found[key] for key in sorted(found))


def functions() -> list[FunctionType]:
    """Those that can be changed somewhere."""
    return [function for function in every_function() if changes(function)]


def changes(function: FunctionType) -> list[Wrong]:
    """All changes of one place in a function."""
    tree = definition(function)
    if tree is None:
        return []
    counts = {one.arg for one in [*tree.args.args, *tree.args.kwonlyargs] if _said(one.annotation) == "int"}
    return [Wrong(function, kind, node, new) for node in _places(tree) for kind, new in _instead(node, counts)]


def _said(node: ast.AST | None) -> str:
    return "" if node is None else ast.unparse(node).strip("'")


def _places(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that compute; not what an error says, nor the condition of a domain."""
    for child in ast.iter_child_nodes(node):
        words = isinstance(child, (ast.Raise, ast.Assert, ast.JoinedStr, ast.arguments, ast.Lambda))
        asked = isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id in SAID
        if words or asked or (isinstance(child, ast.Subscript) and not isinstance(child.ctx, ast.Load)):
            continue
        if isinstance(child, ast.expr):
            yield child
        yield from _places(child)


def _guards(value: Any) -> bool:
    return not isinstance(value, (int, float)) or abs(value) <= ROUNDING


def _instead(node: ast.expr, counts: set[str]) -> Iterator[tuple[str, ast.expr]]:
    """What may stand in place of an expression."""
    if isinstance(node, ast.BinOp):
        if any(isinstance(one, ast.Constant) and _guards(one.value) for one in (node.left, node.right)):
            return
        if isinstance(node.op, (ast.Add, ast.Sub)):
            turned = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield "sign of a sum", ast.BinOp(node.left, turned, node.right)
            yield "a summand dropped", node.left
        elif isinstance(node.op, (ast.Mult, ast.Div)):
            yield "a factor dropped", node.left
            for factor in (0.8, 1.25):
                yield "scale", ast.BinOp(ast.Constant(factor), ast.Mult(), node)
        elif isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant):
            for other in (1, -1):
                yield "exponent", ast.BinOp(node.left, ast.Pow(), ast.Constant(node.right.value + other))
    elif isinstance(node, ast.Call) and picks(node):
        assert isinstance(node.func, ast.Name)
        other = "min" if node.func.id == "max" else "max"
        yield "min for max", ast.Call(ast.Name(other, ast.Load()), node.args, [])
    elif isinstance(node, ast.Call) and _said(node.func) in ("math.sqrt", "np.sqrt"):
        yield "exponent", node.args[0]
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in counts:
        yield "N - 1 for N", ast.BinOp(node, ast.Sub(), ast.Constant(1))


def drawn(seed: int) -> Iterator[Wrong]:
    """Wrong formulas, each of another function: the function, the kind and the place have equal probabilities."""
    rng, every = random.Random(seed), functions()
    for function in rng.sample(every, len(every)):
        found = changes(function)
        kind = rng.choice(sorted({one.kind for one in found}))
        yield rng.choice([one for one in found if one.kind == kind])


@contextmanager
def in_place(wrong: Wrong) -> Iterator[set[str]]:
    """Let the function be wrong for a while; yields what says whether the place was evaluated."""
    tree, hits = definition(wrong.function), set[str]()
    assert tree is not None

    class Exchange(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            if node is wrong.old:
                new = copy.deepcopy(wrong.new)
                return ast.Call(ast.Name(HIT, ast.Load()), [new], [])
            return self.generic_visit(copy.copy(node))

        def generic_visit(self, node: ast.AST) -> ast.AST:
            for name, value in ast.iter_fields(node):
                if isinstance(value, list):
                    setattr(node, name, [self.visit(one) if isinstance(one, ast.AST) else one for one in value])
                elif isinstance(value, ast.AST):
                    setattr(node, name, self.visit(value))
            return node

    def hit(value: Any) -> Any:
        hits.add("evaluated")
        return value

    def forget() -> None:
        for value in list(wrong.function.__globals__.values()):
            if hasattr(value, "cache_clear"):
                value.cache_clear()

    before = wrong.function.__code__
    code = compiled(wrong.function, Exchange().visit(tree))
    wrong.function.__globals__[HIT] = hit
    forget()
    try:
        wrong.function.__code__ = code
        yield hits
    finally:
        wrong.function.__code__ = before
        wrong.function.__globals__.pop(HIT, None)
        forget()


# --- what becomes of them ---------------------------------------------------------------------------------------------


def checks_of(id: str) -> tuple[Any, ...]:
    """What a claim measures now, with more samples as long as it is undecided."""
    claim = find_claim(id)
    for effort in EFFORTS:
        found = Measurement(claim.measure(Context(claim.subject, id, 0, True, effort))).checks
        if overall(found) != "undecided":
            break
    return found


def calling(function: FunctionType, records: dict[str, ClaimRecord]) -> list[str]:
    """The claims that call a formula that uses a function; first those that are about such a formula."""
    names = used_by(function)
    ids = [id for id, one in records.items() if names & set(one.formulas) and not find_claim(id).refuted]
    return sorted(ids, key=lambda id: find_claim(id).formula not in names)


def _moved(ours: Any, theirs: Any) -> bool:
    """Whether a check has other numbers, but for rounding and the tolerance of an identity."""
    slack = ours.tolerance if ours.rule == "identity" else 0.0
    pairs = zip((ours.predicted, *ours.interval[:3]), (theirs.predicted, *theirs.interval[:3]), strict=True)
    return not all(math.isclose(x, y, rel_tol=1e-9, abs_tol=slack) or x is y for x, y in pairs)


def _weaker(ours: Any, theirs: Any) -> bool:
    """Whether a check that moved states less than before: a larger upper bound, or a smaller lower one."""
    right, wrong = float(ours.predicted), float(theirs.predicted)
    return (ours.rule == "upper" and wrong > right) or (ours.rule == "lower" and wrong < right)


def fate(wrong: Wrong, records: dict[str, ClaimRecord]) -> tuple[str, str]:
    """What becomes of a wrong formula, as `main` prints it, and by what."""
    evaluated, moved, stronger = False, list[str](), list[str]()
    ids = calling(wrong.function, records)
    with in_place(wrong) as hits:
        for id in ids:
            hits.clear()
            try:
                found = checks_of(id)
            except (TypeError, IndexError) as error:  # no formula at all, such as a list times 0.8
                return "no formula", f"{id}: {type(error).__name__}: {str(error)[:70]}"
            except Exception as error:
                return "noticed", f"{id}: {type(error).__name__}: {str(error)[:70]}"
            verdict = overall(found)
            if verdict not in EXPECTED:
                return "noticed", f"{id}: {verdict}"
            evaluated = evaluated or bool(hits)
            truth = records[id].truth.checks
            if len(truth) != len(found):
                return "noticed", f"{id}: another number of checks"
            changed = [pair for pair in zip(truth, found, strict=True) if _moved(*pair) and judge(pair[0]) != "vacuous"]
            moved += [id] * bool(changed)
            stronger += [id] * (not all(_weaker(*pair) for pair in changed))
    if not any(find_claim(id).formula in used_by(wrong.function) for id in ids):
        return "disclosed", "no claim is about this formula"
    if moved and not stronger:
        return "disclosed", f"the bound is weaker: {', '.join(moved)}"
    where = "evaluated" if evaluated else "not evaluated"
    return "neither", f"{where} by {len(ids)} claims; numbers that are not weaker changed in {stronger or 'none'}"


def main() -> None:
    """Draw, measure, print."""
    parser = argparse.ArgumentParser(description="Wrong formulas drawn at random, and whether a claim notices them.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=40)
    options = parser.parse_args()
    records = read_records()
    count = {"noticed": 0, "disclosed": 0, "neither": 0, "no formula": 0}
    for wrong in drawn(options.seed):
        if sum(count.values()) - count["no formula"] == options.count:
            break
        what, why = fate(wrong, records)
        count[what] += 1
        print(f"{what:<10} {wrong}\n           {why}", flush=True)
    print(f"seed {options.seed}: {', '.join(f'{n} {what}' for what, n in count.items())}")


if __name__ == "__main__":
    main()
