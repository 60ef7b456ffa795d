"""Two processes that call each other: one checks the answers of a student, the other runs them.

The student's process gets functions and vectors, and sends back numbers, arrays, texts, and lists of them: nothing else
is unpacked in the process that checks.  So nothing that a student redefines there changes a check.  As a program, this
file is the student's process: ``python apart.py DESCRIPTOR``.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
import pickle
import resource
import signal
import sys
import types
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

LARGEST = 64 << 20  # bytes of one message
PLAIN = {type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, np.ndarray}
UNPACKED = {("builtins", name) for name in ("complex", "set", "frozenset")}


class Lost(Exception):
    """The other process does not answer: it has ended, or the time is over."""


class Raised(Exception):
    """What the other process called has raised an error."""


def words(value: Any, most: int = 300) -> str:
    """A text of the other side, in one line."""
    return " ".join(str(value).split())[:most]


class Peer:
    """One end of the line.

    Parameters
    ----------
    connection : Connection
    trusting : bool
        Whether everything that comes is unpacked: on the side of the student.
    wait : function
        Seconds that are left for an answer; None waits for ever.
    """

    def __init__(self, connection: Connection, *, trusting: bool, wait: Callable = lambda: None):
        self.connection, self.trusting, self.wait = connection, trusting, wait
        self.callable: list[Any] = []  # what the other side may call
        self.without: set[str] = set()  # functions of the other side that returned None

    # --- packing ----------------------------------------------------------------------------------------------------

    def keep(self, thing: Any) -> tuple:
        """How the other side names a thing that stays here."""
        self.callable.append(thing)
        try:
            found = inspect.signature(thing).parameters.values()
            parameters = [(p.name, int(p.kind), p.default is not p.empty) for p in found]
        except (TypeError, ValueError):
            parameters = None
        return (
            len(self.callable) - 1,
            str(getattr(thing, "__name__", type(thing).__name__)),
            callable(thing),
            parameters,
        )

    def stays(self, thing: Any) -> bool:
        """Whether a thing is not sent, but called here."""
        kind = type(thing)
        if kind in PLAIN:
            return False
        if not self.trusting:  # to the student: all but functions that he could not import, and what changes
            if isinstance(thing, types.FunctionType):
                module = sys.modules.get(thing.__module__)
                return getattr(module, thing.__qualname__, None) is not thing
            frozen = dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen
            own = kind.__module__.partition(".")[0] == "theory" and not frozen and not issubclass(kind, tuple)
            return isinstance(thing, types.MethodType) or (own and not isinstance(thing, type))
        packing = isinstance(thing, (type, types.BuiltinFunctionType))
        return not (packing or isinstance(thing, (np.generic, np.dtype)))

    def packed(self, message: Any) -> bytes:
        buffer = io.BytesIO()
        pickler = Pickler(buffer, protocol=4)
        pickler.peer = self
        pickler.dump(message)
        return buffer.getvalue()

    def unpacked(self, data: bytes) -> Any:
        unpickler = Unpickler(io.BytesIO(data))
        unpickler.peer = self
        try:
            return unpickler.load()
        except Raised:
            raise
        except Exception as error:
            raise Raised(f"an answer cannot be read: {type(error).__name__}") from error

    def remote(self, number: int, name: str, callable_: bool, parameters: list | None) -> Any:
        """A thing of the other side: a function with the same parameters, or an object whose methods can be called."""
        if self.trusting and not (callable_ and parameters is not None):
            return Object(self, number)
        if not callable_:
            raise Raised(f"an answer has a {words(name, 40)}, which is no number, text, array or list")

        def made(*args, **kwargs):
            found = self.call(number, "", args, kwargs)
            if found is None:
                self.without.add(made.__name__)
            return found

        made.__name__ = made.__qualname__ = name if str(name).isidentifier() else "answer"
        if parameters is not None:
            empty = inspect.Parameter.empty
            given = [inspect.Parameter(str(n), k, default=None if default else empty) for n, k, default in parameters]
            made.__signature__ = inspect.Signature(given)
        return made

    # --- calls ------------------------------------------------------------------------------------------------------

    def send(self, *message: Any) -> None:
        try:
            self.connection.send_bytes(self.packed(message))
        except OSError as error:
            raise Lost("its process has ended") from error

    def receive(self) -> Any:
        try:
            left = self.wait()
            if (left is not None and left <= 0) or not self.connection.poll(left):
                self.connection.close()  # an answer that comes later is not taken for that of another call
                raise Lost("no answer came in the time that there is")
            data = self.connection.recv_bytes(LARGEST)
        except (EOFError, OSError) as error:
            raise Lost("its process has ended, or has sent too much") from error
        return self.unpacked(data)

    def call(self, number: int, method: str, args: tuple, kwargs: dict) -> Any:
        """Call a thing of the other side; arrays and generators among the arguments are changed as they are there."""
        self.send("call", number, method, args, kwargs)
        while True:
            match self.receive():
                case ("call", int(other), str(name), tuple(given), dict(named)):
                    self.serve(other, name, given, named)
                case ("done", result, list(changed)):
                    mine = parts((args, kwargs))
                    for place, new in changed:
                        change(mine[place], new)
                    return result
                case ("raised", text):
                    raise Raised(words(text))
                case _:
                    raise Raised("its process has sent what is no answer")

    def serve(self, number: int, method: str, args: tuple, kwargs: dict) -> None:
        """Answer a call of the other side."""
        try:
            thing = self.callable[number]
            if method:
                if method.startswith("_"):
                    raise AttributeError(method)
                thing = getattr(thing, method)
            given = parts((args, kwargs))
            before = [state(part) for part in given]
            result = thing(*args, **kwargs)
            after = [state(part) for part in given]
            changed = [(i, new) for i, (old, new) in enumerate(zip(before, after, strict=True)) if differs(old, new)]
            answer = self.packed(("done", result, changed))
        except Lost:
            raise
        except BaseException as error:
            said = str(error) if isinstance(error, Raised) else f"{type(error).__name__}: {error}"
            answer = self.packed(("raised", words(said)))
        self.connection.send_bytes(answer)


class Pickler(pickle.Pickler):
    """Sends names of what stays here, and of a generator its state."""

    peer: Peer

    def persistent_id(self, thing):
        if isinstance(thing, (np.ndarray, np.generic)) and self.peer.trusting:
            file = io.BytesIO()
            np.save(file, thing, allow_pickle=False)
            return "array", isinstance(thing, np.generic), file.getvalue()
        if isinstance(thing, np.random.Generator) and not self.peer.trusting:
            return pickle.dumps(thing.bit_generator.state)
        return self.peer.keep(thing) if self.peer.stays(thing) else None


class Unpickler(pickle.Unpickler):
    """Knows no classes but those of numbers, unless the other side is trusted; arrays come as files of NumPy.

    A pickled array may claim that its bytes are Python objects, and printing it then reads any address.
    """

    peer: Peer

    def find_class(self, module, name):
        if not self.peer.trusting and (module, name) not in UNPACKED:
            raise Raised(f"an answer has a {words(name, 40)}, which is no number, text, array or list")
        return super().find_class(module, name)

    def persistent_load(self, named):
        if self.peer.trusting and isinstance(named, bytes):
            state = pickle.loads(named)
            made = np.random.Generator(getattr(np.random, state["bit_generator"])(0))
            made.bit_generator.state = state
            return made
        if named[0] == "array":
            _, scalar, data = named
            found = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
            return found[()] if scalar else found
        return self.peer.remote(*named)


class Object:
    """An object of the other side, on the side of the student: its public methods."""

    def __init__(self, peer: Peer, number: int):
        self._peer, self._number = peer, number

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self._peer.call(self._number, name, args, kwargs)

    def __call__(self, *args, **kwargs):
        return self._peer.call(self._number, "", args, kwargs)


def parts(value: Any) -> list:
    """The arrays and generators among arguments, in their order."""
    if isinstance(value, (np.ndarray, np.random.Generator)):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [part for one in value for part in parts(one)] if isinstance(value, (list, tuple)) else []


def state(part: Any) -> Any:
    return part.bit_generator.state if isinstance(part, np.random.Generator) else part.copy()


def differs(old: Any, new: Any) -> bool:
    return old.tobytes() != new.tobytes() if isinstance(old, np.ndarray) else pickle.dumps(old) != pickle.dumps(new)


def change(part: Any, new: Any) -> None:
    if isinstance(part, np.random.Generator):
        part.bit_generator.state = new
    else:
        part[...] = new


# --- the student's process ------------------------------------------------------------------------------------------


class Student:
    """What the checking process asks for: run cells, and give names."""

    def __init__(self, seconds: float):
        self.seconds, self.space = seconds, {"__name__": "__main__"}

    def timed(self, function, *args, **kwargs):
        """Call within the time; what cannot be interrupted is ended from outside."""

        def late(*_):
            raise TimeoutError(f"not finished after {self.seconds:g} s")

        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)
        try:
            return function(*args, **kwargs)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def prepare(self, cells: list[str]) -> None:
        """Run the cells of the lecture, which may compile."""
        for cell in cells:
            exec(cell, self.space)  # noqa: S102

    def run(self, cells: list[str]) -> list[str]:
        """Run cells; what went wrong, a text for each, empty where nothing did."""
        said = []
        for cell in cells:
            try:
                self.timed(exec, compile(cell, "<a cell>", "exec"), self.space)
                said.append("")
            except BaseException as error:
                said.append(words(f"{type(error).__name__}: {error}"))
        return said

    def limit(self, memory: int, processes: int) -> None:
        """From here on: no more memory, processors' time, files and processes than this."""
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        limits = {"AS": used + memory, "FSIZE": 64 << 20, "CORE": 0, "NPROC": processes, "NOFILE": 256}
        for name, most in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))

    def give(self, names: list[str]) -> dict[str, Any]:
        """What has these names; functions are called here, within the time."""
        return {name: self.limited(self.space[name]) for name in names if name in self.space}

    def limited(self, value: Any) -> Any:
        if not callable(value):
            return value

        def timed(*args, **kwargs):
            return self.timed(value, *args, **kwargs)

        timed.__name__ = getattr(value, "__name__", "answer")
        try:
            timed.__signature__ = inspect.signature(value)
        except (TypeError, ValueError):
            pass
        return timed


def main(descriptor: str, seconds: str) -> None:
    peer = Peer(Connection(int(descriptor)), trusting=True)
    peer.keep(Student(float(seconds)))
    while True:
        try:
            _, number, method, args, kwargs = peer.receive()
        except Lost:
            return
        except Raised as error:
            peer.send("raised", str(error))
            continue
        peer.serve(number, method, args, kwargs)


if __name__ == "__main__":
    main(*sys.argv[1:])
