"""Settings as text, and what methods differ in."""

from __future__ import annotations

from typing import Any

from ..compressors.numpy_function import FunctionCompressor
from ..compressors.share import Share
from ..methods.schedules import as_step

UNEQUAL = ("average", "step", "batch", "local_steps")  # what a fair comparison of compressors keeps the same


def differences(methods: Any, step: Any = None) -> str:
    """A sentence where a comparison of compressors or feedback rules would show other differences as well, or "".

    With a ``step`` for all, such as "best", steps may differ.
    """
    names = ("compressor", "feedback", *UNEQUAL)
    told = {name: {short(_value(method, name)) for method in methods} for name in names}
    differ = [name for name in UNEQUAL if len(told[name]) > 1 and not (name == "step" and step is not None)]
    if differ and (len(told["compressor"]) > 1 or len(told["feedback"]) > 1):
        values = "; ".join(f"{name}: {', '.join(sorted(told[name]))}" for name in differ)
        return (
            f"the methods differ in more than compressor and feedback ({values}), so that the table does not show "
            "what these alone do"
        )
    return ""


def _value(method: Any, name: str) -> Any:
    value = getattr(method, name, None)
    return as_step(value) if name == "step" else value


def short(value: Any) -> str:
    """A setting as a string, without fields that have their default value."""
    if not hasattr(value, "_fields") or isinstance(value, (Share, FunctionCompressor)):
        return value if isinstance(value, str) else repr(value)
    default = getattr(value, "_field_defaults", {})
    parts = []
    for name, part in zip(value._fields, value, strict=True):
        if name in default and type(default[name]) is type(part) and default[name] == part:
            continue
        parts.append(
            short(part)
            if hasattr(part, "_fields")
            else f"{name}={part:g}"
            if isinstance(part, float)
            else f"{name}={part!r}"
        )
    return type(value).__name__ + (f"({', '.join(parts)})" if parts else "")
