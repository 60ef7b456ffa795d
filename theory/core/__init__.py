"""What everything rests on: generic functions, compiled kernels and their cache, settings, random streams."""

from .compile_cache import cache_folder, force_inline, kernel, no_refcount, when_compiling
from .generics import GenericFunction, generic
from .settings import digest, field_types, require, setting, wants_two

__all__ = [
    "GenericFunction",
    "cache_folder",
    "digest",
    "field_types",
    "force_inline",
    "generic",
    "kernel",
    "no_refcount",
    "require",
    "setting",
    "wants_two",
    "when_compiling",
]
