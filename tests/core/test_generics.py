"""Generic functions, settings, and compiled code on disk that never outlives its source."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import types
from typing import NamedTuple

import numba
import numpy as np
import pytest
from conftest import ROOT, run_group

import theory as th
from theory.core import compiling, generic, python_generic, require, setting
from theory.core.digests import digest
from theory.core.generics import GENERICS


@setting
class Add(NamedTuple):
    amount: float


@setting
class Twice(NamedTuple):
    inner: Add


@setting
class Unknown(NamedTuple):
    amount: float


act = generic("act", "act(c, x): what c does to x.")


@act.register(Add)
def _(c, x):
    return x + c.amount


@act.register(Twice)
def _(c, x):
    return act(c.inner, act(c.inner, x))


def test_generics_dispatch_alike_from_python_and_compiled_code():
    @numba.njit
    def compiled(c, x):
        return act(c, x)

    for c, expected in ((Add(2), 3.0), (Twice(Add(2)), 5.0)):
        assert act(c, 1.0) == compiled(c, 1.0) == expected


def test_an_unknown_class_gets_a_message_that_says_what_to_do():
    with pytest.raises(
        TypeError,
        match=r"no implementation for Unknown \(known: Add, Twice\).*write a function act in the body of Unknown",
    ):
        act(Unknown(1), 1.0)


def test_settings_compare_with_their_type_and_convert_their_fields():
    assert Add(2) != Unknown(2) and hash(Add(2)) != hash(Unknown(2))
    assert th.TopK(10) != th.RandK(10)
    assert th.QSGD(4, 2) == th.QSGD(4.0, norm=2.0) and type(th.QSGD(4.0).s) is int
    assert numba.typeof(th.QSGD(4, 2)) == numba.typeof(th.QSGD(np.int32(4), np.inf))
    with pytest.raises(ValueError, match="s: got 1.5"):
        th.QSGD(1.5)
    with pytest.raises(ValueError, match="k: got 'ten'"):
        th.TopK("ten")


def test_digests_tell_types_values_and_arrays_apart():
    values = [1, 1.0, True, "1", (1,), ((1,),), th.TopK(1), th.RandK(1)]
    values += [np.ones(2), np.ones((2, 1)), np.ones(2, np.float32)]
    assert len({digest(v) for v in values}) == len(values)
    assert digest((np.ones(2), {"a": 1})) == digest((np.ones(2), {"a": 1}))
    with pytest.raises(KeyError):
        require(False, "name", 0, "anything else", KeyError)


def test_no_class_of_the_package_is_kept_from_the_cache():
    code = "import theory; from theory.core.compile_cache import external; print(sorted(c.__name__ for c in external))"
    answer = run_group([sys.executable, "-c", code], timeout=120)
    assert answer.stdout.strip() == "[]", answer.stderr


# --- what is compiled is said -----------------------------------------------------------------------------------------

WATCHED = """
import numpy as np, theory as th
method = th.ParallelSGD(th.Sign(), step=th.Constant(0.1))
for _ in range(2):
    th.run(method, th.quadratic(np.ones(4), covariance=0.0), workers=2, steps=3)
"""


def at_a_terminal(program, **variables) -> list[str]:
    """What a program writes to standard error, if that is a terminal."""
    import pty

    here, there = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    del environment["PYTEST_CURRENT_TEST"]
    process = subprocess.Popen([sys.executable, "-c", program], stderr=there, env=environment, cwd=ROOT)
    os.close(there)
    text = b""
    try:
        while part := os.read(here, 4096):
            text += part
    except OSError:  # the other end is closed
        pass
    os.close(here)
    assert process.wait(timeout=300) == 0, text
    return text.decode().splitlines()


@pytest.mark.slow
def test_whoever_watches_is_told_once_what_is_compiled(fresh_cache):
    first = at_a_terminal(WATCHED)
    line = re.compile(r"theory: compiling (.*): \d+ kernels? so far, for \d+ s; next time loaded from (.*)$")
    told = [line.match(text) for text in first]
    assert told and all(told), first
    assert set(told[-1][1].split(", ")) <= {"Quadratic", "Sign", compiling.SHARED}
    assert {found[2] for found in told} == {str(fresh_cache)}
    assert at_a_terminal(WATCHED) == []


def test_whose_kernel_it_is_stands_in_its_signature():
    number, sign = numba.int64, numba.typeof(th.Sign())
    assert compiling._piece((sign, number)) == "Sign"
    assert compiling._piece((numba.types.CPointer(numba.typeof((th.Sign(), 1))), number)) == "Sign"
    assert compiling._piece((number,)) == compiling._piece(()) == compiling.SHARED


def test_nobody_is_told_in_a_test_and_on_other_ranks(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(compiling.threading, "Thread", lambda **_: types.SimpleNamespace(start=lambda: None))
    compiling.Announcer().kernel("Sign", ROOT, True)
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.setenv("PMI_RANK", "1")
    compiling.Announcer().kernel("Sign", ROOT, True)
    assert capsys.readouterr().err == ""
    monkeypatch.delenv("PMI_RANK")
    compiling.Announcer().kernel("Sign", ROOT, False)
    assert "compiling Sign: 1 kernel so far, for 0 s; not stored" in capsys.readouterr().err


# --- class bodies -----------------------------------------------------------------------------------------------------


def unknown(c):
    return "unknown"


unknown.__name__ = "described"


def test_a_class_body_registers_before_and_after_the_generic():
    @setting
    class Early(NamedTuple):
        k: int

        def tripled(c, x):
            return c.k * 3.0 * x

        def described(c):
            return f"early {c.k}"

    tripled = generic("tripled", "tripled(c, x) -> float: three times x.")
    described = python_generic(unknown)

    @setting
    class Late(NamedTuple):
        k: int

        def tripled(c, x):
            return c.k + 3.0 * x

        def described(self):
            return "a method, which no generic asks"

    assert tripled(Early(2), 1.0) == 6.0 and tripled(Late(2), 1.0) == 5.0
    assert described(Early(2)) == "early 2" and described(Late(2)) == "unknown"
    assert Early.tripled.__qualname__.endswith("Early.tripled")
    assert numba.njit(lambda c: tripled(c, 1.0))(Late(1)) == 4.0


def test_every_function_of_a_body_that_is_named_like_a_generic_is_registered():
    tables = {}
    for module in [m for name, m in sys.modules.items() if name.startswith("theory.")]:
        for name, thing in vars(module).items():
            table = getattr(thing, "table", getattr(thing, "registry", None))
            if name in GENERICS and table is not None:
                tables[name] = table
    missing = [
        (cls.__name__, name)
        for table in tables.values()
        for cls in table
        for name, function in vars(cls).items()
        if name in tables and inspect.isfunction(function)
        if next(iter(inspect.signature(function).parameters)) != "self" and cls not in tables[name]
    ]
    assert len(tables) > 80 and not missing


def test_no_two_generics_of_the_package_have_one_name():
    """A function in a class body is registered by name: the later generic would get those of the earlier."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "theory").rglob("*.py")):
        for name in re.findall(r'^\w+ = generic\(\s*"(\w+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
            assert name not in found, f"{name}: in {found[name]} and {path.name}"
            found[name] = path.name
    assert {"quantize", "code_bits", "add_loss_gradient"} <= set(found)


def test_a_line_every_few_seconds_while_kernels_compile(capfd, monkeypatch):
    """In a file, too, from another thread, which ends when nothing has been compiled for a while."""
    monkeypatch.setattr(compiling, "BETWEEN", 0.02)
    monkeypatch.setenv("THEORY_PROGRESS", "1")
    announcer = compiling.Announcer()
    announcer.kernel("QSGD", ROOT, True)
    announcer.on_start(None)
    announcer.on_start(None)  # a function that the first one calls
    announcer.on_end(None)
    announcer.kernel("TopK", ROOT, True)
    watch, said = announcer._watch, ""
    while "compiling QSGD, TopK: 2 kernels so far" not in said:
        said += capfd.readouterr().err
    announcer.on_end(None)
    watch.join(60)
    assert not watch.is_alive() and announcer._watch is None
