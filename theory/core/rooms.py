"""Rooms that can be called: ``theory.methods()`` lists what `theory.methods` has."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class ListedRoom(ModuleType):
    """A package that, when called, lists what it has."""

    def __call__(self) -> Any:
        """The listing of this kind, as `theory.listing` returns it."""
        root, _, kind = self.__name__.rpartition(".")
        return import_module(root).listing(kind)


def lists_itself(room: str) -> None:
    """Let the package of this name be called."""
    sys.modules[room].__class__ = ListedRoom
