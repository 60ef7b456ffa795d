"""Figures from histories and bounds, in one style; matplotlib is imported when the first one is drawn."""

from .compare import Comparison as Comparison
from .compare import compare as compare
from .curves import Curve as Curve
from .curves import draw_curves as draw_curves
from .curves import draw_panels as draw_panels
from .interactive import explore as explore
from .style import new_figure as new_figure
from .style import save_figure as save_figure
from .style import style as style
