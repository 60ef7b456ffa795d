"""Figures of histories and bounds, in one style; matplotlib is imported when the first one is drawn."""

from .comparison import Comparison as Comparison
from .comparison import UnequalMethodsWarning as UnequalMethodsWarning
from .comparison import compare as compare
from .curves import Curve as Curve
from .curves import draw_curves as draw_curves
from .curves import draw_panels as draw_panels
from .figure_style import new_figure as new_figure
from .figure_style import save_figure as save_figure
from .figure_style import style as style
from .interactive import explore as explore
