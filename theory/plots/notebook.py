"""For notebooks: messages of failed checks, and a picture with sliders.

A failed check of a lecture states the expected and the actual value.  Only an interactive notebook shows the sliders;
otherwise there is only the picture.
"""

from __future__ import annotations

import ast
import io
import os
import sys
from typing import Any

import numpy as np

from .appearance import new_figure, style

# --- Messages of failed checks in a lecture --------------------------------------------------------------------------

CLOSE = ("isclose", "allclose")

SEEN_THROUGH = (*CLOSE, "abs", "len", "min", "max", "sum", "all", "any", "isnan", "isinf", "sorted", "type")


class Came:
    """Records the values of the parts of a condition.

    Examples
    --------
    >>> came = Came()
    >>> came("f(2)", 5.0) == 4
    False
    >>> print(came.said("f(2) == 4"))
    expected: f(2) == 4
    actual:   f(2) = 5
    """

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def __call__(self, source: str, value: Any) -> Any:
        """Record a value under its source text, which the message names if the check fails; None is refused."""
        if value is None:
            raise AssertionError(f"{source} is None: is `return` missing?")
        self.values[source] = value
        return value

    def said(self, expected: str, message: object = None) -> str:
        """The expected and the actual values."""
        came = [f"actual:   {source} = {_short(value)}" for source, value in self.values.items()]
        return "\n".join([*([] if message is None else [str(message)]), f"expected: {expected}", *came])


def _short(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    text = np.array2string(value, precision=5, threshold=10) if isinstance(value, np.ndarray) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 120 else f"{text[:117]}..."


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _expected(test: ast.expr) -> str:
    """A condition in words, if it states that two numbers are close."""
    match test:
        case ast.Call(args=[one, other, *_]) if _name(test) in CLOSE:
            return f"{ast.unparse(one)} close to {ast.unparse(other)}"
        case ast.Compare(ast.Call(args=[ast.BinOp(one, ast.Sub(), other)]), [ast.Lt() | ast.LtE()], [within]):
            if _name(test.left) == "abs":  # type: ignore[arg-type]
                return f"{ast.unparse(one)} = {ast.unparse(other)}, within {ast.unparse(within)}"
    return ast.unparse(test)


class _Keep(ast.NodeTransformer):
    """Passes the names and calls of a condition to a `Came`, without constants and the arguments of calls."""

    def _kept(self, node: ast.expr) -> ast.expr:
        came = ast.Name("__came__", ast.Load())
        return ast.Call(came, [ast.Constant(ast.unparse(node)), node], [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if _name(node) not in SEEN_THROUGH:
            return self._kept(node)
        node.args = [self.visit(argument) for argument in node.args]
        if isinstance(node.func, ast.Attribute) and not node.args:  # (a == b).all()
            node.func.value = self.visit(node.func.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._kept(node)

    visit_Attribute = visit_Subscript = visit_ListComp = visit_SetComp = visit_DictComp = visit_Name  # type: ignore

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return node

    visit_Lambda = visit_Starred = visit_NamedExpr = visit_Constant = visit_GeneratorExp  # type: ignore


class ExplainAsserts(ast.NodeTransformer):
    """Rewrites each ``assert`` so that its error states the expected and the actual value; for IPython's transformers.

    Examples
    --------
    >>> tree = ast.fix_missing_locations(ExplainAsserts().visit(ast.parse("assert abs(g(3) - 9) < 1e-9")))
    >>> try:
    ...     exec(compile(tree, "a cell", "exec"), {"g": lambda x: 2 * x})
    ... except AssertionError as error:
    ...     print(error)
    expected: g(3) = 9, within 1e-09
    actual:   g(3) = 6
    """

    def visit_Assert(self, node: ast.Assert) -> Any:
        """Each part of a conjunction is a check of its own."""
        both = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
        parts = node.test.values if both else [node.test]  # type: ignore[attr-defined]
        made = []
        for part in parts:
            said = [repr(_expected(part)), *([ast.unparse(node.msg)] if node.msg else [])]
            kept, error = ast.unparse(_Keep().visit(part)), f"AssertionError(__came__.said({', '.join(said)}))"
            check = ast.parse(
                "__came__ = __import__('theory.plots.notebook', fromlist=['Came']).Came()\n"
                f"if not ({kept}):\n    raise {error}"
            )
            for inner in ast.walk(check):
                ast.copy_location(inner, node)
            made += check.body
        return made


# --- A picture with sliders in an interactive notebook ---------------------------------------------------------------

# Set by interactive front ends (Jupyter's server, Visual Studio Code), and not by tools that only execute a notebook.
PEOPLE = ("JPY_SESSION_NAME", "VSCODE_PID", "VSCODE_CWD")


def explore(
    draw: Any,
    *,
    start: Any = None,
    width: Any = None,
    height: Any = None,
    columns: Any = 1,
    live: Any = None,
    **values: Any,
) -> Any:
    """Show a picture for given settings, with a slider for each of them if sliders can be shown.

    The picture for the initial settings is always shown, as an ordinary image. Sliders are added if the
    package ipywidgets is installed and the notebook is interactive; they redraw the same image.

    Parameters
    ----------
    draw : callable
        ``draw(axes, **settings)`` draws one picture; with more than one column ``axes`` is an array.
    start : dict, optional
        The initial settings; by default the middle one of the values.
    width, height : float, optional
        Size of the figure, in inches.
    columns : int
        Number of axes, side by side.
    live : bool, optional
        Whether to show sliders; by default determined from the environment.
    **values : sequence
        The allowed values of each argument of ``draw``.

    Raises
    ------
    ValueError
        If no values are given, or a setting of ``start`` is not one of its values.

    Examples
    --------
    >>> import math
    >>> from theory.plots import explore
    >>> def circle(axes, r):
    ...     _ = axes.plot([r * math.cos(t) for t in range(9)], [r * math.sin(t) for t in range(9)])
    >>> explore(circle, r=[1, 2, 4])  # in a notebook: the circle with r = 2
    <IPython.core.display.Image object>
    """
    from IPython.display import Image, display

    chosen = first_settings(values, start)

    def picture():
        return Image(data=render(draw, chosen, columns, width, height))

    sliders = make_sliders(values, chosen) if (somebody_looks() if live is None else live) else []
    if sliders:
        display(*sliders)
    shown = display(picture(), display_id=True)

    def redraw(change):
        chosen[change["owner"].description] = change["new"]
        shown.update(picture())

    for slider in sliders:
        slider.observe(redraw, names="value")


def first_settings(values: dict, start: dict | None) -> dict:
    """The initial settings; values that are not on a slider are rejected."""
    if not values or not all(len(list(choices)) for choices in values.values()):
        raise ValueError("explore needs at least one argument of draw with its values, for example s=[1, 2, 4]")
    chosen = {name: list(choices)[len(list(choices)) // 2] for name, choices in values.items()}
    for name, value in (start or {}).items():
        if name not in values or value not in list(values[name]):
            allowed = f"one of {list(values[name])}" if name in values else f"only {', '.join(values)} can be set"
            raise ValueError(f"start has {name}={value!r}, allowed: {allowed}")
        chosen[name] = value
    return chosen


def render(draw: Any, chosen: dict, columns: int, width: float | None, height: float | None) -> bytes:
    """The picture as a PNG, in the package's style."""
    figure, axes = new_figure(1, columns, width=width, height=height)
    with style():
        draw(axes[0, 0] if columns == 1 else axes[0], **chosen)
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=figure.dpi)
    return file.getvalue()


def notebook() -> Any:
    """IPython's shell if the code runs in a notebook."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def somebody_looks() -> bool:
    """Whether the notebook is interactive, according to the environment."""
    return any(os.environ.get(name) for name in PEOPLE)


def make_sliders(values: dict, chosen: dict) -> list:
    """A slider for each setting, or none if ipywidgets is not installed."""
    try:
        from ipywidgets import SelectionSlider
    except ImportError:
        return []
    return [
        SelectionSlider(
            options=[(f"{value}", value) for value in choices],
            value=chosen[name],
            description=name,
            continuous_update=False,
        )
        for name, choices in values.items()
    ]
