"""A small package with the real ``core/``, whose sources a test edits, and what a process then compiles and answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

CORE = Path(__file__).resolve().parents[2] / "theory" / "core"
SOURCES = {
    "constants": "SCALE = 2\n",
    "derived": "from .constants import SCALE\nHALF = 8 * SCALE\n",
    "deep": """
from .core import kernel

@kernel
def deepest(x):
    "The end of the chain."
    return x + 1
""",
    "middle": """
from .core import kernel
from .deep import deepest

@kernel
def middle(x):
    return deepest(x) * 10
""",
    "factory": """
from .core import kernel

def make(n):
    @kernel
    def inner(x):
        return x * n
    return inner

def wrap(function):
    @kernel
    def outer(x):
        return function(x)
    return outer

one, two = wrap(make(1)), wrap(make(100))
""",
    "intrinsics": """
from numba import types
from numba.extending import intrinsic

AMOUNT = 5

@intrinsic
def shifted(typing_context, x):
    def code(context, builder, signature, arguments):
        return builder.add(arguments[0], context.get_constant(types.int64, AMOUNT))
    return types.int64(types.int64), code
""",
    "apply": """
from .core import generic

apply = generic("apply", "apply(c, x)", lambda c, x: x)
""",
    "first": """
from typing import NamedTuple
from .apply import apply
from .core import registers

@registers
class First(NamedTuple):
    a: int
    b: int
    def apply(c, x):
        return x + c.a - 2 * c.b
""",
    "second": """
from typing import NamedTuple
from .apply import apply
from .core import registers

@registers
class Second(NamedTuple):
    a: int
    def apply(c, x):
        return x * c.a

class Third(NamedTuple):
    a: int
""",
    "kernels": """
from . import derived
from .apply import apply
from .constants import SCALE
from .core import kernel
from .factory import one, two
from .first import First
from .intrinsics import shifted
from .middle import middle

def with_default(x, n=SCALE):
    return x * n

inner_default = kernel(with_default)

@kernel
def chain(x):
    return middle(x)

@kernel
def scaled(x):
    return x * SCALE

@kernel
def derived_from(x):
    return x * derived.HALF

@kernel
def default(x):
    return inner_default(x)

@kernel
def made(x):
    return one(x) + 7 * two(x)

@kernel
def shift(x):
    return shifted(x)

@kernel
def applied(c, x):
    return apply(c, x)

@kernel
def fields(x):
    p = First(x, 1)
    return p[0] * 10 + p[1]
""",
}
PROGRAM = """
import json, sys
import numba
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, what):
        compiled.append(what.data["dispatcher"].py_func.__qualname__.split(".")[-1])
    def on_end(self, what):
        pass

event.register("numba:compile", Listener())
%s
from small import kernels as k
from small.core.compile_cache import loaded_files
from small.first import First
from small.second import Second, Third
%s
calls = {
    "chain": lambda: k.chain(3), "scaled": lambda: k.scaled(3), "derived": lambda: k.derived_from(3),
    "default": lambda: k.default(3), "made": lambda: k.made(3), "shift": lambda: k.shift(3),
    "fields": lambda: k.fields(3), "first": lambda: k.applied(First(a=3, b=1), 4),
    "second": lambda: k.applied(Second(3), 4), "third": lambda: k.applied(Third(3), 4),
}
answers, found = {}, {}
for name in %r or calls:
    compiled.clear()
    answers[name] = calls[name]()
    found[name] = sorted(compiled)
print(json.dumps([answers, found, sorted(loaded_files())]))
"""


class Answer(NamedTuple):
    """What a process answers, what it compiles for each call, which files it loads, and what it says."""

    values: dict[str, Any]
    compiled: dict[str, list[str]]
    files: list[str]
    said: list[str]

    @property
    def again(self) -> set[str]:
        """The calls for which something was compiled."""
        return {name for name, functions in self.compiled.items() if functions}


class SmallPackage:
    """The package in a folder of its own, with a cache folder beside it."""

    def __init__(self, folder: Path):
        self.folder, self.cache = folder, folder / "cache"
        shutil.copytree(CORE, folder / "small" / "core", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "small" / "__init__.py").write_text("")
        for name, text in SOURCES.items():
            (folder / "small" / f"{name}.py").write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace the one place where a module has ``old``."""
        path = self.folder / "small" / f"{name}.py"
        text = path.read_text()
        assert text.count(old) == 1, (name, old)
        path.write_text(text.replace(old, new))

    def start(self, *calls: str, first: str = "", after: str = "", **variables: str | None) -> subprocess.Popen:
        """Start a process that makes these calls, or all; ``first`` runs before the import and ``after`` after it."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "THEORY_CACHE": str(self.cache), **variables}
        kept = {name: value for name, value in environment.items() if value is not None}
        kept["PYTHONDONTWRITEBYTECODE"] = "1"  # an edit within a second is not seen in bytecode
        command = [sys.executable, "-c", PROGRAM % (first, after, calls)]
        return subprocess.Popen(
            command, cwd=self.folder, env=kept, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def answer(self, process: subprocess.Popen) -> Answer:
        """Wait for a process."""
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        return Answer(*json.loads(out.splitlines()[-1]), err.splitlines())

    def run(self, *calls: str, **options: Any) -> Answer:
        """Start a process and wait for it."""
        return self.answer(self.start(*calls, **options))

    def stored(self) -> list[Path]:
        """The files of stored code."""
        return sorted(path for path in (self.cache / "compiled").glob("*/*/*") if not path.name.startswith("."))
