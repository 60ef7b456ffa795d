"""Runs the package where Numba does not exist, as in Pyodide: ``import without_numba`` before ``import theory``.

Kernels stay the Python functions that they are written as.  So they compute the same numbers, and take much longer:
this is for a lecture's small vectors.  What they make of LLVM code has a version in Python here, but for the checksum
of a message: `theory.encode` and `theory.decode` raise NotImplementedError.
"""

import concurrent.futures
import functools
import importlib.util
import sys
import types
import warnings

import numpy as np

# --- modules that stand in for Numba and llvmlite ---------------------------------------------------------------------


class Nothing:
    """Takes the place of any class of Numba: it can be made, called, indexed and inherited from, to no effect."""

    def __init__(self, *args, **options):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __call__(self, *args, **options):
        return Nothing()

    __getitem__ = __call__


class Module(types.ModuleType):
    """A module in which every name is a class of its own."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, type(name, (Nothing,), {}))
        return vars(self)[name]


class Kernel:
    """What ``njit`` returns: the function itself, with the attributes that the package sets."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.py_func, self.targetoptions, self.compile = function, {}, lambda signature: None

    def __call__(self, *args):
        return self.py_func(*args)


def unsigned(x):
    """The unsigned integer type as wide as a float."""
    return np.uint32 if isinstance(x, np.float32) else np.uint64


def store_word(buffer, byte, word):
    buffer[byte : byte + 8] = np.frombuffer(int(word).to_bytes(8, "little"), np.uint8)


INTRINSICS = {
    "at": lambda arguments: arguments,
    "_bit_length": lambda n: int(n).bit_length(),
    "bits_to_float": lambda word, like: unsigned(like)(word).view(np.asarray(like).dtype),
    "fetch_early": lambda array, i, write: None,
    "float_to_bits": lambda x: np.asarray(x).view(unsigned(x))[()],
    "load_signs": lambda array, i: np.uint32(sum(1 << k for k in range(32) if array[i + k] < 0.0)),
    "load_word": lambda buffer, byte: np.uint64(int.from_bytes(buffer[byte : byte + 8].tobytes(), "little")),
    "on_stack": lambda zero, size: np.empty(size, np.asarray(zero).dtype),
    "store_word": store_word,
}


def intrinsic(function):
    def missing(*args):
        raise NotImplementedError(f"{function.__name__}: this needs Numba")

    return INTRINSICS.get(function.__name__, missing)


PARTS = "bytecode caching codegen compiler dispatcher errors event extending runtime serialize"
NAMES = ["numba", "numba.types", "numba.extending", "numba.core", "llvmlite", "llvmlite.binding", "llvmlite.ir"]
for name in [*NAMES, *(f"numba.core.{part}" for part in PARTS.split())]:
    sys.modules[name] = Module(name)
    above, _, last = name.rpartition(".")
    if above:
        setattr(sys.modules[above], last, sys.modules[name])

numba = sys.modules["numba"]
numba.__version__, numba.version_info = "0", types.SimpleNamespace(short=(0, 0))
sys.modules["llvmlite"].__version__ = "0"
numba.njit = lambda function=None, **options: Kernel(function) if function else Kernel
numba.extending.intrinsic = intrinsic
numba.extending.overload = lambda *args, **options: lambda function: function
numba.core.errors.NumbaError = type("NumbaError", (Exception,), {})

if importlib.util.find_spec("fcntl") is None:  # it locks the file of a checkpoint
    sys.modules["fcntl"] = Module("fcntl")

# --- steps of a round, and threads ------------------------------------------------------------------------------------

warnings.filterwarnings("ignore", "overflow encountered in scalar", RuntimeWarning)  # random numbers wrap around


class AtOnce(concurrent.futures.Executor):
    """Takes the place of ``ThreadPoolExecutor``: Pyodide starts no threads."""

    def __init__(self, *args, **options):
        pass

    def submit(self, function, /, *args, **options):
        future = concurrent.futures.Future()
        try:
            future.set_result(function(*args, **options))
        except BaseException as error:
            future.set_exception(error)
        return future


concurrent.futures.ThreadPoolExecutor = AtOnce

from theory.core import bound_calls  # noqa: E402


def bind(arguments, replicas, owners):
    """A step of a round that calls the plain function with its arguments, not machine code with their addresses."""
    made = type(arguments)
    function = made.plain.get(type(arguments[0]), made.kernel)
    each = functools.partial(bound_calls._each, function, arguments, replicas, owners)
    return bound_calls.Call(made.__name__, made.kind, each, arguments)


bound_calls.bind = bind
