"""Figures of histories and bounds in one style; matplotlib is imported when the first figure is drawn."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
