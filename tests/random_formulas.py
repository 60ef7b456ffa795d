"""Wrong formulas drawn at random, and whether a claim notices them or the ledger says that none would.

``python tests/random_formulas.py --seed 7`` changes one place in the source of each of 40 functions of `theory.bounds`,
measures the claims that execute it, and prints for each change

- *noticed*: a claim fails, and which;
- *disclosed*: no claim evaluates the place, and the ledger lists the branch; or it says that no claim is about the
  formula; or the numbers stay within the factor, or the summand, that the ledger says would pass; or an upper bound
  became larger, or a lower bound smaller, which their kind does not ask;
- *neither*.

What ends in a TypeError or IndexError is no formula, and is drawn again.
It depends on the seed alone, and on the sources.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import inspect
import math
import pkgutil
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import theory.bounds
from theory.bounds.closed_form import Value
from theory.claims import find_claim
from theory.claims.branch_coverage import compiled, definition, parts, picks, ways_of
from theory.claims.checks import EFFORTS, Context, Measurement
from theory.claims.evidence import Evidence
from theory.claims.judgement import CONSISTENT, judge, overall
from theory.claims.several_results import related, unclaimed, unevaluated
from theory.claims.verification import judged
from theory.experiment.kept_evidence import read_evidence
from theory.reporting.dependencies import ROOT

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


# --- places and changes -----------------------------------------------------------------------------------------------


def functions() -> list[FunctionType]:
    """All functions of `theory.bounds` that can be changed somewhere, in the order of their names."""
    found = {}
    for module in pkgutil.iter_modules(theory.bounds.__path__):
        if module.name in INFRASTRUCTURE:
            continue
        space = importlib.import_module(f"theory.bounds.{module.name}")
        for value in vars(space).values():
            plain = inspect.unwrap(value) if callable(value) else None
            if isinstance(plain, FunctionType) and plain.__module__ == space.__name__ and changes(plain):
                found[plain.__module__, plain.__name__] = plain
    return [found[key] for key in sorted(found)]


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


def executing(function: FunctionType, evidence: dict[str, Evidence]) -> list[str]:
    """The claims that execute a function, those of it first, then the quickest."""
    file = Path(inspect.getfile(function)).relative_to(ROOT).as_posix()
    ids = [id for id, one in evidence.items() if function.__name__ in one.executed.get(file, ())]
    ids += [id for id in evidence if id not in ids and function in parts(find_claim(id).of)]
    ids = [id for id in ids if not find_claim(id).refuted]
    return sorted(ids, key=lambda id: (find_claim(id).formula != function.__name__, evidence[id].seconds))


def ways_to(wrong: Wrong) -> set[str]:
    """The branches in which the changed place lies, or between which it decides."""
    name, tree = wrong.function.__name__, definition(wrong.function)

    def below(node: ast.AST) -> bool:
        return any(one is wrong.old for one in ast.walk(node))

    def search(nodes: Any) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.If) and not below(node) and isinstance(node.body[-1], (ast.Return, ast.Raise)):
                yield ways_of(name, node)[0]
            if not below(node):
                continue
            if isinstance(node, (ast.If, ast.IfExp)):
                sides = (node.orelse, node.body)
                for way, side in enumerate(sides):
                    each = side if isinstance(side, list) else [side]
                    if any(map(below, each)):
                        yield ways_of(name, node)[way]
                        yield from search(each)
                yield from search([node.test])
                return
            if picks(node):
                taken = [way for way, one in zip(ways_of(name, node), node.args, strict=True) if below(one)]
                yield from taken or ways_of(name, node)
            yield from search(ast.iter_child_nodes(node))
            return

    return set(search(tree.body if tree is not None else ()))


def _moved(ours: Any, theirs: Any) -> bool:
    """Whether a check has other numbers, but for rounding and the tolerance of an identity."""
    slack = ours.tolerance if ours.rule == "identity" else 0.0
    pairs = zip((ours.predicted, *ours.interval[:3]), (theirs.predicted, *theirs.interval[:3]), strict=True)
    return not all(math.isclose(x, y, rel_tol=1e-9, abs_tol=slack) or x is y for x, y in pairs)


def _within(id: str, truth: Any, found: Any, results: dict[str, Any]) -> str:
    """Why a claim that holds with changed numbers was bound to; empty if there is no such reason."""
    blind, larger = results[id].blind, False
    for ours, theirs in zip(truth, found, strict=False):
        right, wrong = float(ours.predicted), float(theirs.predicted)
        if not _moved(ours, theirs):
            continue
        if judge(ours) == "vacuous":
            continue
        ratio = wrong / right if right else 1.0
        weaker = (ours.rule == "upper" and wrong >= right) or (ours.rule == "lower" and wrong <= right)
        larger = larger or (right != wrong and weaker)
        if right != wrong and not weaker and not (blind and blind.low * 0.999 <= ratio <= blind.high * 1.001):
            least = _least(ours.predicted, blind.smaller if blind else ())
            if least is None or not least <= wrong <= right:
                return ""
        if right == wrong and not (blind and blind.unnoticed):
            return ""
    return f"{id}: " + ("the bound is weaker" if larger else str(blind) if blind else "nothing is predicted")


def _least(predicted: Any, smaller: tuple[str, ...]) -> float | None:
    """The number that a formula could have, if the summands that may be 20 % smaller are; None without any."""
    terms = [predicted.terms[name] for name in smaller if isinstance(predicted, Value) and name in predicted.terms]
    return float(predicted) - 0.2 * sum(terms) * (1.0 + 1e-9) if terms else None


def fate(wrong: Wrong, evidence: dict[str, Evidence], results: dict[str, Any], left: set[str]) -> tuple[str, str]:
    """What becomes of a wrong formula, as `main` prints it, and by what."""
    evaluated, moved, reasons = False, list[str](), dict[str, str]()
    with in_place(wrong) as hits:
        ids = executing(wrong.function, evidence)
        for id in ids:
            hits.clear()
            try:
                found = checks_of(id)
            except (TypeError, IndexError) as error:  # no formula at all, such as a list times 0.8
                return "no formula", f"{id}: {type(error).__name__}: {str(error)[:70]}"
            except Exception as error:
                return "noticed", f"{id}: {type(error).__name__}: {str(error)[:70]}"
            verdict = overall(found)
            if verdict not in ("holds", "vacuous", CONSISTENT):
                return "noticed", f"{id}: {verdict}"
            evaluated = evaluated or bool(hits)
            truth = evidence[id].truth.checks
            if len(truth) != len(found) or any(map(_moved, truth, found)):
                moved.append(id)
                reasons[id] = _within(id, truth, found, results)
    listed = sorted(ways_to(wrong) & left)
    if wrong.function.__name__ in unclaimed(list(results.values())):
        return "disclosed", "no claim is about this formula"
    if listed:
        return "disclosed", f"not evaluated: {listed[0]}"
    own = [id for id in moved if find_claim(id).formula == wrong.function.__name__]
    said = [reasons[id] for id in own or moved]  # the claims that are about the formula say what they are blind to
    if said and all(said):
        return "disclosed", f"within what would pass: {'; '.join(said)[:200]}"
    where = "evaluated" if evaluated else "not evaluated"
    return "neither", f"{where} by {len(ids)} claims, numbers changed in {', '.join(moved) or 'none'}"


def main() -> None:
    """Draw, measure, print."""
    parser = argparse.ArgumentParser(description="Wrong formulas drawn at random, and whether a claim notices them.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--evidence", type=Path, default=None, help="folder; by default that of the checkout")
    options = parser.parse_args()
    evidence = read_evidence(options.evidence) if options.evidence else read_evidence()
    results = related(judged(find_claim(id), one) for id, one in evidence.items())
    left = {way for ways in unevaluated(results).values() for way in ways}
    count = {"noticed": 0, "disclosed": 0, "neither": 0, "no formula": 0}
    for wrong in drawn(options.seed):
        if sum(count.values()) - count["no formula"] == options.count:
            break
        what, why = fate(wrong, evidence, {result.id: result for result in results}, left)
        count[what] += 1
        print(f"{what:<10} {wrong}\n           {why}", flush=True)
    print(f"seed {options.seed}: {', '.join(f'{n} {what}' for what, n in count.items())}")


if __name__ == "__main__":
    main()
