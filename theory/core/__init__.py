"""Foundations: generic functions, compiled kernels and their cache, settings, random streams."""

from .compile_cache import force_inline, kernel, no_refcount, uncounted, when_compiling
from .generics import generic, inherits, python_generic, registers
from .settings import require, setting, traits
