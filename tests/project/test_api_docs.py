"""Every public name has a docstring that numpydoc's validation accepts, with the checks of pyproject.toml."""

from __future__ import annotations

import importlib
import inspect
import tomllib
from pathlib import Path

import pytest

import theory
import theory.problems
from theory.core.generics import GENERICS

validation = pytest.importorskip("numpydoc.validate", reason="docs: numpydoc is not installed (make test installs it)")

from numpydoc.docscrape import get_doc_object  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
MODULES = (
    "bounds",
    "claims",
    "cluster",
    "compressors",
    "core",
    "core.random",
    "data",
    "measure",
    "methods",
    "methods.schedules",
    "problems",
    "wire",
)

# Functions without an example: they work on a file, a launcher, or the raw arrays of kernels.
NO_EXAMPLE = {
    "calibrate",
    "claim",
    "fill_bits",
    "fill_keys",
    "fill_normals",
    "linear_problem",
    "load_network",
    "new_symbols",
    "register_wire",
    "save_calibration",
    "seal",
    "threefry2x32",
    "threefry2x32_13",
}
# Classes of theory that a function or an error makes; of other modules no class needs an example.
MADE = {"Audit", "DataError", "UnstableMemoryWarning", "WireError"}
# What its maker describes: the fields of a claim are the parameters of `claim`; an AuditTable is a tuple.
DESCRIBED_ELSEWHERE = {"AuditTable", "Claim"}
# A method's or a property's line says it all.
OF_MEMBERS = {"GL01", "GL02", "GL03", "GL05", "GL08", "SS01", "SS03", "SS04", "SS06"}


class Documented(validation.Validator):
    """As numpydoc reads it, but for two things.

    The fields of a record may stand under Attributes, and "None" under Parameters says that there are none.
    """

    def __init__(self, obj_name, thing):
        super().__init__(get_doc_object(thing))

    @property
    def doc_parameters(self):
        found = super().doc_parameters
        found.pop("None", None)
        if inspect.isclass(self.obj):
            fields = getattr(self.obj, "_fields", None) or getattr(self.obj, "__dataclass_fields__", ())
            found |= {n: said for n, said in self._doc_parameters(["Attributes"]).items() if n in fields}
        return found

    @property
    def doc_all_parameters(self):
        return self.doc_parameters | self.doc_other_parameters

    @property
    def signature_parameters(self):
        if inspect.isfunction(self.obj) and next(iter(inspect.signature(self.obj).parameters), "") == "cls":
            return ("cls", *super().signature_parameters)  # a parameter like others, where a class is what is given
        return super().signature_parameters


def public() -> dict[str, object]:
    """Path to thing; what Numba compiled is documented by the function that it was made from."""
    found, seen = {}, set()
    for module in (theory, *(importlib.import_module(f"theory.{name}") for name in MODULES)):
        names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        for name in names:
            thing = getattr(module, name)
            thing = getattr(thing, "py_func", thing)
            if (inspect.isclass(thing) or inspect.isfunction(thing)) and id(thing) not in seen:
                seen.add(id(thing))
                found[f"{module.__name__}.{name}"] = thing
    return found


PUBLIC = public()
GENERIC = {path: thing for path, thing in PUBLIC.items() if hasattr(thing, "table")}


def wanted() -> set[str]:
    left_out = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["numpydoc_validation"]["checks"]
    assert left_out[0] == "all"
    return set(validation.ERROR_MSGS) - set(left_out)


def excused(path: str, thing) -> set[str]:
    name, codes = path.rsplit(".", 1)[1], set()
    made = inspect.isclass(thing) and (name in MADE or path.count(".") > 1)
    if made or name in NO_EXAMPLE:
        codes.add("EX01")
    if name in DESCRIBED_ELSEWHERE:
        codes |= {"PR01", "PR04", "PR07"}
    return codes


def faults(path: str, thing) -> list[str]:
    asked = wanted() - excused(path, thing)
    said = validation.validate(path, Documented, thing=thing)["errors"]
    found = [f"{path}: {code} {text}" for code, text in said if code in asked]
    for name, member in vars(thing).items() if inspect.isclass(thing) else ():
        member = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        ours = inspect.isfunction(member) and member.__module__.startswith("theory") and not name.startswith("_")
        if ours and not (name in GENERICS and "self" not in inspect.signature(member).parameters):
            said = validation.validate(f"{path}.{name}", Documented, thing=member)["errors"]
            found += [f"{path}.{name}: {code} {text}" for code, text in said if code in OF_MEMBERS]
    return found


def test_every_public_name_is_documented():
    found = [fault for path, thing in PUBLIC.items() if path not in GENERIC for fault in faults(path, thing)]
    assert not found, "\n".join(found)


def test_every_generic_begins_with_its_signature():
    """A generic has many implementations and one contract, which its text begins with: name(arguments) ..."""
    assert len(GENERIC) > 20
    found = [path for path, thing in GENERIC.items() if not thing.__doc__.startswith(f"{thing.__name__}(")]
    assert not found


def test_the_exceptions_are_needed():
    """Each name in the lists above is public and would be reported."""
    by_name = {path.rsplit(".", 1)[1]: thing for path, thing in PUBLIC.items()}
    for name in NO_EXAMPLE | MADE:
        assert any(code == "EX01" for code, _ in validation.validate(name, Documented, thing=by_name[name])["errors"])
    for name in DESCRIBED_ELSEWHERE:
        assert any(code == "PR01" for code, _ in validation.validate(name, Documented, thing=by_name[name])["errors"])


def test_what_the_validation_catches():
    """A docstring with an argument that it does not name, one that does not exist, and no example."""

    def wrong(a, b):
        """One line

        Parameters
        ----------
        a : int
            A number.
        c : int
        """
        return a + b

    codes = {fault.split(": ")[1].split()[0] for fault in faults("theory.wrong", wrong)}
    assert {"SS03", "PR01", "PR02", "PR07", "RT01", "EX01"} <= codes
