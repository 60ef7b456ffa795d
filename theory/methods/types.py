"""Types of the arguments of round functions and of their parts, for annotations.

A vector, ``Vector``, is an array of shape (replicas, owners, d), or rows in the forms of sparse data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from .schedule_values import Rate

if TYPE_CHECKING:
    from ..cluster.context import Run
    from ..cluster.rows import Message, Messages, Phase
    from ..cluster.setup import Setup
else:
    Message = Messages = Phase = Run = Setup = Any

Scale: TypeAlias = "Rate | float"
Vector: TypeAlias = Any
