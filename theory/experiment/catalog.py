"""The catalogue of methods by name.

A name such as ``qsgd-4`` or ``top-100-memory`` identifies a method completely, so that ``--methods`` spans an axis and
a seed can be derived from the name.  Any other compressor, feedback rule or server is written out: see `method_names`.
A user's own method is in a Python file: see `method_files`.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..reporting.files import nearest
from .method_files import is_file, method_of_file, named_in
from .method_names import class_names, is_written, written_method

FLAGSHIP = ("sgd", "sgd-sparse", "qsgd-2", "qsgd-4", "qsgd-8", "top-k-memory", "rand-k-memory", "top-k")

FAMILIES = {
    "sgd": ("sgd", "full precision, every coordinate as 32 bits"),
    "sgd-sparse": ("sgd-sparse", "without loss: index and value of the non-zeros, the l2 term applied locally"),
    "qsgd-B": (r"qsgd-(?P<number>\d+)", "QSGD with B bits a coordinate (sign, 2^(B-1) - 1 levels), a 2-norm a bucket"),
    "qsgd-B-inf": (r"qsgd-(?P<number>\d+)-inf", "the same with the maximum norm of each bucket"),
    "top-K": (r"top-(?P<number>\d+|k)", "the K largest entries, the rest is lost (biased, no memory)"),
    "top-K-memory": (r"top-(?P<number>\d+|k)-memory", "the K largest entries of step times gradient plus memory"),
    "rand-K": (r"rand-(?P<number>\d+|k)", "K random entries times d/K (unbiased, no memory)"),
    "rand-K-memory": (r"rand-(?P<number>\d+|k)-memory", "K random entries of step times gradient plus memory"),
}


class UnknownName(ValueError):
    """An unknown name; the message gives the nearest known ones."""


class Entry(NamedTuple):
    """A method of the catalogue: its name, family and number (bits or k; None if the family has none)."""

    name: str
    family: str
    number: int | str | None

    @property
    def memory(self) -> bool:
        """Whether workers have an error memory."""
        return self.family.endswith("-memory")


def find(name: str) -> Entry:
    """Find the entry of a name.

    Raises
    ------
    UnknownName
        If there is none, or its number is not allowed.

    Examples
    --------
    >>> find("qsgd-4")
    Entry(name='qsgd-4', family='qsgd-B', number=4)
    >>> find("qsgd4")
    Traceback (most recent call last):
        ...
    theory.experiment.catalog.UnknownName: unknown method 'qsgd4': did you mean qsgd-4 ...?
    """
    for family, (pattern, _) in FAMILIES.items():
        match = re.fullmatch(pattern, name)
        if match is None:
            continue
        written = match.groupdict().get("number")
        number = int(written) if written is not None and written != "k" else written
        if "B" in family and isinstance(number, int) and not 2 <= number <= 16:
            raise UnknownName(f"method {name!r}: got {number} bits, allowed: 2 to 16")
        if isinstance(number, int) and not 0 < number < 2**31:
            raise UnknownName(f"method {name!r}: got K = {number}, allowed: 1 to the dimension of the data")
        return Entry(name, family, number)
    if is_file(name):
        method_of_file(name)
        return Entry(name, "file", None)
    if is_written(name):
        made = written_method(name, d=2**40, k=1)  # whatever does not depend on the data is refused here
        parts = [part.strip().lower() for part in name.split("+")[1:]]
        kind = "-memory" if parts == ["memory"] else "-other" if parts or made.method is not None else ""
        return Entry(name, f"written{kind}", None)
    first, known = name.partition("+")[0].partition("(")[0], (*FLAGSHIP, "qsgd-4-inf", "rand-k")
    shown = f"{', '.join(known)}, and classes with arguments, such as ef21(topk(k=94))"
    raise UnknownName(f"unknown method {name!r}: {nearest(first, [*known, *class_names()], shown)}")


def title(entry: Entry, k: int) -> str:
    """Name of a method in tables and legends."""
    if entry.family == "file":
        return named_in(entry.name)[1]
    if entry.family.startswith("written"):
        return entry.name
    n = k if entry.number == "k" else entry.number
    return {
        "sgd": "SGD, dense",
        "sgd-sparse": "SGD, sparse",
        "qsgd-B": f"QSGD, {n} bits",
        "qsgd-B-inf": f"QSGD, {n} bits, max",
        "top-K": f"top-{n}, no memory",
        "top-K-memory": f"top-{n} + memory",
        "rand-K": f"rand-{n}, no memory",
        "rand-K-memory": f"rand-{n} + memory",
    }[entry.family]


def compressor(entry: Entry, k: int, bucket: int) -> Any:
    """The compressor of an entry; ``k`` is the value of the letter k in its name."""
    from ..compressors import QSGD, Bucketed, Identity, RandK, TopK

    n = entry.number if isinstance(entry.number, int) else k
    if entry.family == "sgd":
        return Identity()
    if entry.family == "sgd-sparse":
        return Identity(sparse=True)
    if entry.family.startswith("qsgd"):
        return Bucketed(QSGD(s=2 ** (n - 1) - 1, norm=float("inf") if entry.family.endswith("inf") else 2.0), bucket)
    return TopK(n) if entry.family.startswith("top") else RandK(n, unbiased=not entry.memory)
