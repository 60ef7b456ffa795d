"""Closed forms: every formula of the package, as a pure function of numbers.

A docstring states the setting, the statement, its kind (identity, tight, upper, lower, rate) and the source. The
arguments with their domains, the errors and an example follow. All formulas share one convention: ``delta`` is the
contraction, error <= (1 - delta)||v||^2; ``omega`` is the variance factor of an unbiased compressor.
"""

from typing import TYPE_CHECKING, Any

from ..core.arguments import lists_itself as _lists_itself

if TYPE_CHECKING:
    from .formulas import *  # noqa: F403

_lists_itself(__name__)  # th.bounds() has them by subject


def __dir__() -> list[str]:
    return list(__getattr__("__all__"))  # the formulas alone


def __getattr__(name: str) -> Any:
    """Read all formulas at the first use of one: a rank that needs none starts about half a second earlier."""
    import difflib
    from importlib import import_module

    if "__all__" not in globals() and (name == "__all__" or not name.startswith("__")):
        formulas = import_module(f"{__name__}.formulas")
        globals().update({each: getattr(formulas, each) for each in formulas.__all__}, __all__=formulas.__all__)
    if name in globals():
        return globals()[name]
    near = difflib.get_close_matches(name, globals().get("__all__", ()), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
