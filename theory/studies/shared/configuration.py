"""What a TOML file with the key ``study`` says: which study, on which data, and that study's own options.

A study that has options declares them in its module as a setting named ``Options``; ``study`` then gets one as a
further argument.  Every other key of the file is a field of it, so that a file says nothing that is not read.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple

from ...reporting.files import ConfigurationError, UnreadableError, find_toml, nearest, read_toml, shipped

__all__ = ["STUDIES", "StudyConfiguration", "about", "chosen", "make_options", "shipped_studies"]

STUDIES = {
    "bits-to-accuracy": "bits to one accuracy, against dense and against sparse float32",
    "catalyst": "CR-PSGD-Catalyst on a non-convex problem: gradient norm against gradients and against rounds",
    "choose": "the best method by bits and by seconds, for sparse and dense data, from slow networks to fast",
    "conef": "contractive error feedback against SGD, rbSGD and EFSGD: accuracy, bits, bytes of memory",
    "conef-table-1": "the smallest sketch for each share of partial feedback, beside the talk's table",
    "cr-psgd": "growing batches against fixed ones and against local steps: loss over gradients and over rounds",
    "largest-batch": "loss after as many gradients against the batch, and the largest batch without loss",
    "lock-free": "Mem-SGD's figure 4: speed-up over threads that share x without locks, with SGD, rand-k and top-k",
    "mem-sgd": "Mem-SGD's figures 2 and 3: top-k and rand-k with memory against SGD and QSGD, in epochs and bits",
    "nuqsgd": "NUQSGD against QSGD and QSGDinf at equal bits: variance, loss, held-out accuracy",
    "sign-and-nuqsgd": "EF-SignSGD against NUQSGD with 4 and 8 bits: bits of a bucket, seconds of a round, loss",
    "stragglers": "the fastest k of n workers: time of a round, best k, wall clock, bias of their mean and its cure",
    "time-to-accuracy": "time of a pass times passes: gradient, coding and exchange against workers, batch and network",
    "spectrum": "singular values of real gradients, and whether spectral beats entry-wise sparsification",
    "ternary-dimension": "ternary quantization with the 2-norm: iterations against the dimension",
}
COMMON = ("study", "about", "seed", "data", "topics")  # keys of every such file
SEED_LIMIT = 2**62  # studies add small numbers to it


class StudyConfiguration(NamedTuple):
    """One experiment that is a study.

    Attributes
    ----------
    name : str
        Of the experiment: its figure and its place on the page are named after it.
    study : str
        A key of ``STUDIES``.
    about : str
        One line.
    seed : int
    data, topics : str, optional
        As for `run_study`.
    options : NamedTuple, optional
        The study's own ``Options``, where it has some.
    """

    name: str
    study: str
    about: str
    seed: int = 0
    data: str | None = None
    topics: str | None = None
    options: NamedTuple | None = None

    @classmethod
    def from_dict(cls, values: dict, name: str | None = None) -> StudyConfiguration:
        """Check what a file says.

        Raises
        ------
        ConfigurationError
            For an unknown study or key, with the nearest known one, or a value outside its domain.

        Examples
        --------
        >>> StudyConfiguration.from_dict({"study": "ternary-dimension", "seed": 1}).seed
        1
        >>> StudyConfiguration.from_dict({"study": "ternary-dimension", "sed": 1})
        Traceback (most recent call last):
            ...
        theory.experiment.configuration.ConfigurationError: unknown key 'sed': did you mean seed ...?
        """
        study = values.get("study")
        if study not in STUDIES:
            raise ConfigurationError(f"unknown study {study!r}: {nearest(str(study), STUDIES)}")
        own = {key: value for key, value in values.items() if key not in COMMON}
        common = {key: value for key, value in values.items() if key in COMMON}
        for key in ("about", "data", "topics"):
            if not isinstance(common.get(key, ""), str):
                raise ConfigurationError(f"{key}: got {common[key]!r}, allowed: a text")
        seed = common.get("seed", 0)
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < SEED_LIMIT:
            raise ConfigurationError(f"seed: got {seed!r}, allowed: a whole number from 0 to 2**62 - 1")
        return cls(**({"name": name or study, "about": STUDIES[study]} | common), options=make_options(study, own))

    @classmethod
    def from_toml(cls, path) -> StudyConfiguration:
        """Read a file, or a configuration of this package by its name."""
        path = find_toml(path)
        try:
            return cls.from_dict(read_toml(path), path.stem)
        except UnreadableError:
            raise
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}: {error}") from None


def module_of(study: str):
    """The module of a study."""
    return importlib.import_module(f".{study.replace('-', '_')}", __package__)


def make_options(study: str, values: dict):
    """The study's ``Options`` with these values; None if it has none.

    Raises
    ------
    ConfigurationError
        For a name that it does not have, or a value outside its domain.
    """
    options = getattr(module_of(study), "Options", None)
    known = () if options is None else options._fields
    for key in values:
        if key not in known:
            raise ConfigurationError(f"unknown key {key!r}: {nearest(key, [*COMMON, *known])}")
    try:
        given = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        return None if options is None else options(**given)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(str(error)) from None


def shipped_studies() -> dict[str, str]:
    """The experiments of this package that are studies: name and study."""
    found = {name: read_toml(path).get("study") for name, path in shipped().items()}
    return {name: study for name, study in found.items() if study is not None}


def about(name: str) -> str:
    """One line on an experiment of this package."""
    values = read_toml(shipped()[name])
    return values.get("about") or STUDIES.get(values.get("study", ""), "")


def chosen(names) -> list[str]:
    """The experiments that names stand for: experiments, or studies for all of theirs; without names, all.

    Raises
    ------
    ConfigurationError
        For an unknown name, with the nearest known one.
    """
    known = shipped_studies()
    found: list = []
    for name in names or known:
        of_study = [experiment for experiment, study in known.items() if study == name]
        if name not in known and not of_study:
            raise ConfigurationError(f"unknown study {name!r}: {nearest(name, dict.fromkeys([*known, *STUDIES]))}")
        found += [name] if name in known else of_study
    return list(dict.fromkeys(found))
