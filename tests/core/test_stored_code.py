"""Stored machine code: what is compiled again after an edit, exactly, and that nothing stale runs."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time

import pytest
from conftest import run_group
from small_package import CORE, SmallPackage

from theory.core import stored_code
from theory.core.compiling import SHARED
from theory.core.private_files import write
from theory.core.stored_code import prune

EVERYTHING = {"chain", "scaled", "derived", "default", "made", "shift", "fields", "first", "second", "third"}
FIRST = {
    "chain": 40,
    "scaled": 6,
    "derived": 48,
    "default": 6,
    "made": 3 + 7 * 300,
    "shift": 8,
    "fields": 31,
    "first": 5,
    "second": 12,
    "third": 4,
}


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """The small package, all of whose kernels are stored."""
    package = SmallPackage(tmp_path_factory.mktemp("package"))
    found = package.run()
    assert found.values == FIRST and found.again == EVERYTHING and found.said == []
    return package


@pytest.fixture
def package(warm):
    """The same with its sources as they were."""
    kept = {path: path.read_text() for path in (warm.folder / "small").glob("*.py")}
    yield warm
    for path, text in kept.items():
        path.write_text(text)


def test_a_second_process_compiles_nothing_and_knows_the_files(package):
    again = package.run()
    assert again.values == FIRST and again.again == set() and again.said == []
    assert {"deep.py", "middle.py", "factory.py", "intrinsics.py", "first.py", "second.py"} <= set(again.files)
    assert package.run("chain").files == ["deep.py", "kernels.py", "middle.py"]


def test_what_is_found_needs_none_of_what_compiles(package):
    """A fifth of a second and 20 MB; where a symbol is missing all is imported, since LLVM would end the process."""
    watch = """
from numba.core.cpu import CPUContext
import llvmlite.binding as llvm
refresh, address = CPUContext.refresh, llvm.address_of_symbol
calls_of_it = []
CPUContext.refresh = lambda context: (print("all"), calls_of_it.append(True), refresh(context))
"""
    late = "llvm.address_of_symbol = lambda name: address(name) if calls_of_it else None"
    never = "llvm.address_of_symbol = lambda name: None"
    for missing, imported, again in (("", False, False), (late, True, False), (never, True, True)):
        out, err = package.start(first=watch + missing).communicate(timeout=300)
        answers, compiled, _ = json.loads(out.splitlines()[-1])
        assert answers == FIRST and any(compiled.values()) == again, err
        assert ("all" in out.splitlines()) == imported, err


def test_files_under_each_others_names_are_not_loaded(package):
    paths = package.stored()
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    found = package.run()
    assert found.values == FIRST and found.again == EVERYTHING and found.said == []
    assert package.run().again == set()


def test_a_profiler_compiles_nothing_again(package):
    """Numba changes the flags of functions that are called while one runs."""
    assert package.run(first="import cProfile; cProfile.Profile().enable()").again == set()


EDITS = {
    "a helper deep in a chain": ([("deep", "x + 1", "x + 2")], {"chain": 50}),
    "a constant in another module": ([("constants", "2", "3")], {"scaled": 9, "derived": 72, "default": 9}),
    "a constant that another is computed from": ([("derived", "8 *", "9 *")], {"derived": 54}),
    "a function in a closure": ([("factory", "x * n", "x * n + 1")], {"made": 4 + 7 * 301}),
    "closures that change places": ([("factory", "one, two", "two, one")], {"made": 300 + 21}),
    "a default": ([("kernels", "n=SCALE", "n=SCALE + 5")], {"default": 21}),
    "what an intrinsic generates": ([("intrinsics", "AMOUNT = 5", "AMOUNT = 6")], {"shift": 9}),
    "one implementation": ([("second", "x * c.a", "x - c.a")], {"second": 1}),
    "a new implementation": (
        [("kernels", "@kernel\ndef chain", "from .second import Third\n@apply.register(Third)\ndef f(c, x):\n"
          "    return 0\n\n@kernel\ndef chain")],
        {"third": 0},
    ),
    "the order of fields": (
        [("first", "    a: int\n    b: int", "    b: int\n    a: int")],
        {"fields": 31, "first": 5},
    ),
    "the name of a field": (
        [("first", "    b: int", "    c: int"), ("first", "2 * c.b", "3 * c.c"),
         ("first", "c.a - ", "c.a - 1 - ")],
        {"fields": 31, "first": None},
    ),
    "an option": ([("deep", "@kernel", "@kernel_without"), ("deep", "import kernel", "import uncounted, kernel\n"
                   "kernel_without = lambda f: uncounted(kernel(f))")], {"chain": 40}),
}  # fmt: skip


@pytest.mark.parametrize("case", EDITS)
def test_an_edit_compiles_its_dependants_again_and_nothing_else(package, case):
    edits, changed = EDITS[case]
    for edit in edits:
        package.edit(*edit)
    calls = [name for name in FIRST if changed.get(name, 0) is not None]
    found = package.run(*calls)
    assert found.values == {name: changed.get(name, FIRST[name]) for name in calls}
    assert found.again == set(changed) & set(calls)
    assert package.run(*calls).again == set()


def test_the_chain_alone_is_compiled_again_and_both_states_are_stored(package):
    package.edit("middle", "* 10", "* 20")
    found = package.run()
    assert found.compiled["chain"] == ["chain", "middle"]  # what it calls was found
    assert found.values["chain"] == 80 and found.again == {"chain"}
    package.edit("middle", "* 20", "* 10")
    assert package.run().again == set()


def test_words_compile_nothing(package):
    for path in (package.folder / "small").glob("*.py"):
        path.write_text(f'"""A new docstring."""\n\n# and a comment\n\n{path.read_text()}')
    package.edit("deep", '"The end of the chain."', '"""Another\n    docstring."""  # and a comment')
    package.edit("first", "    def apply(c, x):\n", "    # a comment\n\n    def apply(c, x):\n")
    found = package.run()
    assert found.values == FIRST and found.again == set()


def test_another_numba_python_or_option_compiles_everything(package):
    assert package.run(first="numba.__version__ += '.1'").again == EVERYTHING
    assert package.run(first="import sys; sys.version += ' '").again == EVERYTHING
    assert package.run(NUMBA_BOUNDSCHECK="1").again == EVERYTHING
    assert package.run(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="").again == EVERYTHING
    assert package.run().again == set()


def test_a_file_edited_while_a_process_runs_does_not_mislabel_its_code(package):
    package.edit("deep", "x + 1", "x + 5")  # so that there is something to compile
    path = package.folder / "small" / "deep.py"
    edit = f"from pathlib import Path; p = Path({str(path)!r}); p.write_text(p.read_text().replace('x + 5', 'x + 7'))"
    running = package.run("chain", after=edit)
    assert running.values["chain"] == 80  # it goes on with what it imported
    after = package.run("chain")
    assert after.values["chain"] == 100 and after.again == {"chain"}


def test_an_assigned_constant_does_not_mislabel_code(package):
    package.edit("constants", "2", "11")
    assert package.run("scaled", after="k.SCALE = 70").values["scaled"] == 210
    assert package.run("scaled").values["scaled"] == 33
    late = "k.scaled(3.0); k.SCALE = 70"  # after the constant was looked at
    assert package.run("scaled", after=late).values["scaled"] in (33, 210)
    package.edit("kernels", "x * SCALE", "1 + x * SCALE")
    assert package.run("scaled", after=late).values["scaled"] == 211
    assert package.run("scaled").values["scaled"] == 34


def test_implementations_from_elsewhere_are_not_stored(package):
    mine = """
from typing import NamedTuple
from small.apply import apply
class Mine(NamedTuple):
    a: int
apply.register(Mine)(lambda c, x: x + %d)
Second = Mine
"""
    for number in (1, 2):
        found = package.run("second", after=mine % number)
        assert found.values["second"] == 4 + number and found.again == {"second"}
    theirs = "from small.apply import apply\napply.register(Second)(lambda c, x: x + 9)"
    for _ in range(2):
        found = package.run("second", after=theirs)
        assert found.values["second"] == 13 and found.again == {"second"}
    assert package.run("second").values["second"] == 12


def test_old_and_too_many_files_are_removed(tmp_path):
    for name, days in (("a", 0.0), ("b", 1.0), ("c", 100.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "code").write_bytes(bytes(100))
        when = time.time() - days * 86_400
        os.utime(tmp_path / name / "code", (when, when))
    prune(tmp_path, days=30)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    prune(tmp_path, size=150)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


def test_the_newest_states_of_a_kernel_are_stored(tmp_path):
    folder = tmp_path / "compiled" / "versions" / "kernel"
    for number in range(20):
        assert write(folder / f"{number % 2}-{number:02}", None)
        os.utime(folder / f"{number % 2}-{number:02}", (number, number))
    (tmp_path / "compiled" / "pruned").touch()  # today
    stored_code._prune(folder, "0")
    kept = sorted(path.name for path in folder.glob("0-*"))
    assert kept == [f"0-{number:02}" for number in range(20 - 2 * stored_code.MOST_STATES, 20, 2)]


def test_an_untested_numba_compiles_the_standard_way_and_stores_it(package):
    untested = "numba.version_info = numba.version_info._replace(short=(9, 0)); numba.__version__ = '9.0'"
    found = package.run(first=untested)
    assert found.values == FIRST and found.again == EVERYTHING
    found = package.run(first=untested)
    assert found.values == FIRST and found.again == set()


EVERY_KERNEL = """
import importlib, pkgutil, types
import theory
from numba.core.dispatcher import Dispatcher
from theory.core.fingerprints import generics, node, reached

made = {}
for module in pkgutil.walk_packages(theory.__path__, "theory."):
    if not module.name.endswith("__main__"):
        for value in vars(importlib.import_module(module.name)).values():
            value = getattr(value, "kernel", value) if isinstance(value, type) else value
            if isinstance(value, Dispatcher):
                made[value] = module.name
            elif isinstance(value, types.FunctionType) and hasattr(value, "identity"):
                made.update({f: value.identity for f in value.table.values() if isinstance(f, Dispatcher)})
                assert generics[value.identity] is value, f"two generics are called {value.identity}"
unknown = {thing for thing in reached(made) if not node(thing).own}
assert not unknown, unknown
print(len(made))
"""


def test_every_kernel_of_the_package_can_be_stored():
    done = run_group([sys.executable, "-c", EVERY_KERNEL], timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 500


TWO_COMPRESSORS = """
import json
import numpy as np, theory as th
from theory.core.compile_cache import when_compiling

pieces = []
when_compiling(lambda what, folder, stored: pieces.append(what))
v = np.ones(4)
for compressor in th.Sign(), th.TopK(2):
    th.decode(th.encode(compressor, v, 1))
    th.run(th.ParallelSGD(compressor, th.Constant(0.1)), th.quadratic(v, covariance=0.0), workers=2, steps=2)
print(json.dumps([th.compress(th.Sign(), v, 0).tolist(), sorted(pieces)]))
"""


@pytest.mark.slow
def test_an_edit_of_a_compressor_compiles_that_compressor_again(tmp_path):
    shutil.copytree(CORE.parent, tmp_path / "theory", ignore=shutil.ignore_patterns("__pycache__"))
    variables = {"PYTHONPATH": str(tmp_path), "THEORY_CACHE": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}

    def run():
        done = run_group([sys.executable, "-c", TWO_COMPRESSORS], timeout=400, env=variables, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert run() == [[1.0] * 4, ["Quadratic", "Sign", "TopK", SHARED]]
    assert run() == [[1.0] * 4, []]
    path = tmp_path / "theory" / "compressors" / "quantizers" / "sign.py"
    text = path.read_text()
    for old in ("choose(v, out.dtype.type(1), out.dtype.type(-1), out)", '"""'):
        assert old in text
        text = text.replace(old, old.replace("type(1)", "type(3)").replace('"""', '"""New: '), 1)
    path.write_text(text)
    assert run() == [[3.0] * 4, ["Sign"]]
    assert run() == [[3.0] * 4, []]
