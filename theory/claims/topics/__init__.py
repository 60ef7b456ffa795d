"""The claims, by topic: every module of this folder is imported, so that a new file needs no list."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f".{_module.name}", __package__)
