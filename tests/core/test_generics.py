"""Generic functions, settings, and compiled code on disk that never outlives its source."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest
from conftest import ROOT, run_group

import theory as th
from theory.core import compile_bar, generic, python_generic, require, setting
from theory.core.generics import GENERICS
from theory.core.settings import digest


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
    first = [text for text in at_a_terminal(WATCHED) if not re.search(r", \d+ kernels so far, for \d+ s$", text)]
    line = re.compile(r"theory: compiling (.*) \(some seconds; next time it is loaded from (.*)\)$")
    told = [line.match(text) for text in first]
    assert all(told), first
    assert sorted(found[1] for found in told) == ["Quadratic", "Sign", compile_bar.SHARED_PIECES]
    assert {found[2] for found in told} == {str(fresh_cache)}
    assert at_a_terminal(WATCHED) == []


def test_whose_kernel_it_is_stands_in_its_signature():
    number, sign = numba.int64, numba.typeof(th.Sign())
    assert compile_bar._piece((sign, number)) == "Sign"
    assert compile_bar._piece((numba.types.CPointer(numba.typeof((th.Sign(), 1))), number)) == "Sign"
    assert compile_bar._piece((number,)) == compile_bar._piece(()) == compile_bar.SHARED_PIECES


def test_nobody_is_told_in_a_pipe_or_a_test(capsys, monkeypatch):
    compile_bar._tell_who_watches("Sign", ROOT, True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    compile_bar._tell_who_watches("Sign", ROOT, True)
    assert capsys.readouterr().err == ""
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    compile_bar._tell_who_watches("Sign", ROOT, False)
    assert "compiling Sign (some seconds; not stored" in capsys.readouterr().err


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


def test_a_time_of_compiling_has_a_line_every_few_seconds(capsys, monkeypatch):
    """In a file, too: with how many kernels are done, and for how long; nothing in a test, and on one rank only."""
    clock = [100.0]
    monkeypatch.setattr(compile_bar.time, "monotonic", lambda: clock[0])
    for rank in ("1", None):
        monkeypatch.delenv("PYTEST_CURRENT_TEST", raising=False)
        monkeypatch.delenv("THEORY_PROGRESS", raising=False)
        for name in compile_bar.RANKS:
            monkeypatch.delenv(name, raising=False)
        if rank is not None:
            monkeypatch.setenv("PMI_RANK", rank)
        spell = compile_bar.Spell()
        for _ in range(12):
            spell.kernel("QSGD")
            clock[0] += 1.5
        said = capsys.readouterr().err.splitlines()
        if rank is not None:
            assert said == []
    assert said[0] == "theory: compiling QSGD, 4 kernels so far, for 4 s"
    assert len(said) == 3  # after 4.5, 9 and 13.5 seconds
    clock[0] += 60.0
    spell.kernel("TopK")  # a new spell begins to count again
    assert capsys.readouterr().err == ""
