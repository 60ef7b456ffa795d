"""Compressors that keep a share of the entries: how many that is follows from the length of the vector."""

from __future__ import annotations

from typing import Any, NamedTuple


class Share(NamedTuple):
    """What ``TopK(0.01)`` is until a run knows d: a compressor with k = 0.01 d, rounded, at least 1.

    Examples
    --------
    >>> from theory import TopK
    >>> TopK(0.01), TopK(0.01).of_length(1000), TopK(0.01).of_length(20)
    (TopK(k=0.01), TopK(k=10), TopK(k=1))
    """

    kind: type
    fields: tuple

    def of_length(self, d: int) -> Any:
        """The compressor for vectors of length d."""
        share, *others = self.fields
        return self.kind(max(1, round(share * d)), *others)

    def __repr__(self) -> str:
        shown = zip(self.kind._fields, self.fields, strict=True)  # type: ignore[attr-defined]
        return f"{self.kind.__name__}({', '.join(f'{name}={value!r}' for name, value in shown)})"


def share_of(raw: Any) -> Share | None:
    """Stands for a compressor whose k is a number between 0 and 1; None for others."""
    return Share(type(raw), tuple(raw)) if isinstance(raw.k, float) and 0.0 < raw.k < 1.0 else None


def of_length(c: Any, d: int) -> Any:
    """The compressor ``c`` for vectors of length d."""
    return c.of_length(d) if isinstance(c, Share) else c
