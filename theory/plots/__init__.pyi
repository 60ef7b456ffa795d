"""The public names, for type checkers and for `__init__.py`, which loads each when it is asked for."""

from .appearance import new_figure, save_figure, style
from .comparison import Comparison, Sweep, UnequalMethodsWarning, compare
from .curves import Curve, draw_curves, draw_panels
from .notebook import explore

__all__ = [
    "Comparison",
    "Curve",
    "Sweep",
    "UnequalMethodsWarning",
    "compare",
    "draw_curves",
    "draw_panels",
    "explore",
    "new_figure",
    "save_figure",
    "style",
]
