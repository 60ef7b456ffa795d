"""The catalogue of methods by name.

A name such as ``qsgd-4`` or ``top-100-memory`` identifies a method completely, so that ``--methods`` spans an axis and
a seed can be derived from the name.  Any other compressor, feedback rule or server is written out: see `method_names`.
A user's own method is in a Python file: see `method_files`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..reporting.files import nearest
from .method_files import is_file, method_of_file, named_in
from .method_names import Written, class_names, is_written, written_method

FLAGSHIP = ("sgd", "sgd-sparse", "qsgd-2", "qsgd-4", "qsgd-8", "top-k-memory", "rand-k-memory", "top-k")


class Alias(NamedTuple):
    """A short name: the method that it stands for, its title and a description.

    ``n`` is the number in the name, the value of the letter k for k; ``levels`` is 2^(n-1) - 1.
    """

    written: str
    title: str
    about: str


ALIASES = {
    "sgd": Alias("identity", "SGD, dense", "full precision, every coordinate as 32 bits"),
    "sgd-sparse": Alias(
        "identity(sparse=True)",
        "SGD, sparse",
        "without loss: index and value of the non-zeros, the l2 term applied locally",
    ),
    "qsgd-B": Alias(
        "bucketed(qsgd(s={levels}), {bucket})",
        "QSGD, {n} bits",
        "QSGD with B bits a coordinate (sign, 2^(B-1) - 1 levels), a 2-norm a bucket",
    ),
    "qsgd-B-inf": Alias(
        "bucketed(qsgd(s={levels}, norm=inf), {bucket})",
        "QSGD, {n} bits, max",
        "the same with the maximum norm of each bucket",
    ),
    "top-K": Alias(
        "topk(k={n})",
        "top-{n}, no memory",
        "the K largest entries, the rest is lost (biased, no memory)",
    ),
    "top-K-memory": Alias(
        "topk(k={n})+memory",
        "top-{n} + memory",
        "the K largest entries of step times gradient plus memory",
    ),
    "rand-K": Alias(
        "randk(k={n}, unbiased=True)",
        "rand-{n}, no memory",
        "K random entries times d/K (unbiased, no memory)",
    ),
    "rand-K-memory": Alias(
        "randk(k={n})+memory",
        "rand-{n} + memory",
        "K random entries of step times gradient plus memory",
    ),
}


class UnknownName(ValueError):
    """An unknown name; the message gives the nearest known ones."""


class Entry(NamedTuple):
    """A method of the catalogue: its name, family and number (bits or k; None if the family has none).

    ``step`` is what ``sgd(step=0.5)`` says of its step.
    """

    name: str
    family: str
    number: int | str | None
    step: str = ""

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
    Entry(name='qsgd-4', family='qsgd-B', number=4, step='')
    >>> find("qsgd4")
    Traceback (most recent call last):
        ...
    theory.experiment.catalog.UnknownName: unknown method 'qsgd4': did you mean qsgd-4 ...?
    """
    short, step = _step_in(name)
    for family in ALIASES:
        match = re.fullmatch(family.replace("B", r"(\d+)").replace("K", r"(\d+|k)"), short)
        if match is None:
            continue
        text = match[1] if match.groups() else None
        number = int(text) if text is not None and text != "k" else text
        if "B" in family and isinstance(number, int) and not 2 <= number <= 16:
            raise UnknownName(f"method {name!r}: got {number} bits, allowed: 2 to 16")
        if isinstance(number, int) and not 0 < number < 2**31:
            raise UnknownName(f"method {name!r}: got K = {number}, allowed: 1 to the dimension of the data")
        if step:
            written_method(f"identity+step({step})", d=1, k=1)  # refused here if it is no step
        return Entry(name, family, number, step)
    if is_file(name):
        method_of_file(name)
        return Entry(name, "file", None)
    if is_written(name):
        made = written_method(name, d=2**40, k=1)  # whatever does not depend on the data is refused here
        added = [part.strip().lower() for part in name.split("+")[1:]]
        added = [part for part in added if not part.startswith("step(")]
        kind = "-memory" if added == ["memory"] else "-other" if added or made.method is not None else ""
        return Entry(name, f"written{kind}", None)
    first, known = name.partition("+")[0].partition("(")[0], (*FLAGSHIP, "qsgd-4-inf", "rand-k")
    shown = f"{', '.join(known)}, and classes with arguments, such as ef21(topk(k=94))"
    raise UnknownName(f"unknown method {name!r}: {nearest(first, [*known, *class_names()], shown)}")


def _step_in(name: str) -> tuple[str, str]:
    """A short name and its step: ``sgd(step=0.5)`` is sgd with the step 0.5."""
    match = re.fullmatch(r"([^()]+)\(step=([^()]*)\)", name.replace(" ", ""))
    return (match[1], match[2]) if match else (name, "")


def title(entry: Entry, k: int) -> str:
    """Name of a method in tables and legends."""
    if entry.family == "file":
        return named_in(entry.name)[1]
    if entry.family not in ALIASES:
        return entry.name
    return ALIASES[entry.family].title.format(n=_number(entry, k)) + (f", step {entry.step}" if entry.step else "")


def parts(entry: Entry, d: int, k: int, bucket: int) -> Written:
    """The parts of an entry's method, which is not in a file; ``k`` is the value of the letter k in its name."""
    name = entry.name
    if entry.family in ALIASES:
        n = _number(entry, k)
        levels = 2 ** (n - 1) - 1 if "B" in entry.family else None
        name = ALIASES[entry.family].written.format(n=n, levels=levels, bucket=bucket)
        name += f"+step({entry.step})" if entry.step else ""
    return written_method(name, d, k)


def _number(entry: Entry, k: int) -> int:
    return entry.number if isinstance(entry.number, int) else k
