"""The index of the sources: the statements of five sources, and the evidence for or against them.

An entry of ``docs/sources/index.toml`` quotes a statement and names its evidence by key.  Its verdict is computed: it
is that of the weakest evidence.  The relation of statement and evidence, which a person chose, is a separate column.  A
result that concerns an entry and is not used as evidence is listed by name, with a reason that is printed.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..claims.judgement import graded, judge, passing_factor
from ..reporting.files import ConfigurationError
from ..reporting.scale import FAILS, HOLDS, LOOSELY, OPEN, PART, UNJUDGED, VACUOUS
from ..studies.shared.configuration import entry_key
from .record_values import KeyRefused, Records, fill, keys_of, statement

ROOT = Path(__file__).resolve().parents[2]  # of a checkout
INDEX, FIGURES = ROOT / "docs" / "sources" / "index.toml", ROOT / "figures"
# From weak to strong.  "in part" has trials that hold; for "undecided" not even that is known.
ORDER = (FAILS, OPEN, PART, VACUOUS, LOOSELY, HOLDS)
RELATIONS = ("as printed", "as quoted", "with another constant", "ordering", UNJUDGED)
SAYS = ("measured", "because", "reason")  # our own texts: templates


class Entry(NamedTuple):
    """One statement of a source.

    Attributes
    ----------
    source, id, kind : str
        The source, the statement's name there, and whether it is a theorem, a figure, ...
    says, printed : str
        The statement in our words, and as printed.
    relation : {"as printed", "as quoted", "with another constant", "ordering", "–"}
        How the evidence is related to the statement; "as quoted" means that the text itself was not read, and a dash
        that nothing is judged.
    evidence : list of str
        ``claim:id``, ``claim:id#words of a check``, ``study:name#statement``, ``test:file::name``.
    left_out : list of str
        Results that concern it and do not count.
    because : str
        Why not.
    ours : list of str
        Further references: ``bound:``, ``method:``, ``study:``, ``figure:``, ``lecture:``, ``test:``.
    measured, reason : str
        The result, and remarks; these are templates whose numbers are keys.
    command : str
        The command that repeats the measurement, if the evidence does not state it.
    """

    source: str
    id: str
    kind: str
    says: str
    printed: str
    relation: str
    evidence: list[str] = []
    left_out: list[str] = []
    because: str = ""
    ours: list[str] = []
    measured: str = ""
    reason: str = ""
    command: str = ""

    @property
    def key(self) -> str:
        """The key by which studies name it."""
        return entry_key(self.source, self.id)

    def commands(self) -> list[str]:
        """The commands that repeat the measurement."""
        if self.command:
            return [self.command]
        run, found = "python -m theory.experiment", []
        every = [*self.evidence, *self.left_out, *(f"study:{name}" for name in self.studies())]
        for kind, do in (("claim", f"{run} verify"), ("study", f"{run} study"), ("test", "python -m pytest")):
            names = dict.fromkeys(re.sub("#.*", "", key.partition(":")[2]) for key in every if key.startswith(kind))
            found += [" ".join([do, *names])] if names else []
        return found

    def studies(self) -> list[str]:
        """The studies that it names: as evidence, in a number or as a reference."""
        keys = [*self.evidence, *self.left_out, *self.ours, *(key for f in SAYS for key in keys_of(getattr(self, f)))]
        return list(dict.fromkeys(re.split("[#.]", key[6:])[0] for key in keys if key.startswith("study:")))


class Piece(NamedTuple):
    """One piece of evidence: its key, its verdict, the statement, and the factor of a wrong number that passes."""

    key: str
    status: str
    text: str
    passing: float | None = None


class Judged(NamedTuple):
    """An entry with its verdict, or a dash, its evidence, and its sentences with their numbers."""

    entry: Entry
    verdict: str
    evidence: list[Piece]
    left_out: list[Piece]
    measured: str
    because: str
    reason: str


def read_index(path: str | Path = INDEX) -> list[Entry]:
    """Read the entries of an index.

    Raises
    ------
    ConfigurationError
        If there is no such file, or an entry lacks a field or has an unknown one.
    """
    path = Path(path)
    if not path.is_file():
        raise ConfigurationError(f"there is no index of sources {path}: it is part of a checkout")
    found = []
    for item in tomllib.loads(path.read_text(encoding="utf-8"))["item"]:
        try:
            found.append(Entry(**item))
        except TypeError:
            allowed = ", ".join(Entry._fields)
            raise ConfigurationError(f"{item.get('id')}: got {', '.join(item)}, allowed: {allowed}") from None
    return found


# --- verdicts -----------------------------------------------------------------------------------------------------


def judged(entry: Entry, records: Records) -> Judged:
    """The entry with its verdict, which is the weakest of its evidence.

    Raises
    ------
    KeyRefused
        For evidence or a number that does not exist.
    """
    pieces, left = ([piece(key, records) for key in keys] for keys in (entry.evidence, entry.left_out))
    status = min((one.status for one in pieces), key=ORDER.index, default=OPEN)
    said = {field: fill(getattr(entry, field), records) for field in SAYS}
    return Judged(entry, UNJUDGED if entry.relation == UNJUDGED else status, pieces, left, **said)


def judge_index(index: Any = INDEX, figures: Any = FIGURES) -> list[Judged]:
    """All entries with their verdicts."""
    records = Records(figures)
    return [judged(entry, records) for entry in read_index(index)]


def piece(key: str, records: Records) -> Piece:
    """A piece of evidence, by its key."""
    kind, _, rest = key.partition(":")
    name, _, part = rest.partition("#")
    if kind == "claim":
        result = records.claim(name)
        if not part:
            factor = result.by_run or result.passing  # of a theorem from several lemmas: that of its run
            return Piece(key, graded(result.verdict, factor), result.title, factor)
        check = records.check(name, part, key)
        word = judge(check)
        factor = passing_factor([check]) if word == HOLDS else None
        return Piece(key, graded(word, factor), result.title, factor)
    if kind == "study" and part:
        said = statement(records.study(name), part)
        return Piece(key, said.verdict, said.text)
    file, _, test = rest.partition("::")
    path = records.figures.parent / file
    if kind == "test" and path.is_file() and re.search(rf"^def {test}\b", path.read_text(encoding="utf-8"), re.M):
        return Piece(key, HOLDS, test)  # a test that fails stops everything
    raise KeyRefused(f"evidence {key!r}: allowed: claim:id, claim:id#check, study:name#statement, test:file::name")


# --- errors in the index ------------------------------------------------------------------------------------------


def complaints(entries: Iterable[Entry], records: Records, studies: Iterable[str] = ()) -> list[str]:
    """Errors in the entries, and statements of these studies that concern an entry and are not mentioned in it."""
    entries = list(entries)
    found = [f"{key}: twice" for key, n in Counter(entry.key for entry in entries).items() if n > 1]
    found += [f"{entry.key}: {wrong}" for entry in entries for wrong in _wrongs(entry, records)]
    by_key, named = {entry.key: entry for entry in entries}, set[tuple[str, str]]()
    for name in studies:
        for said in records.study(name).statements:
            key = f"study:{name}#{said.id}"
            for target in said.bears_on:
                whole = [target] if target in by_key else [k for k in by_key if k.startswith(target)]
                if len(whole) != 1:
                    found.append(f"{key} concerns {target}, which is not an entry" + ", but several" * (len(whole) > 1))
                elif key not in (*by_key[whole[0]].evidence, *by_key[whole[0]].left_out):
                    found.append(f"{whole[0]}: {key} ({said.verdict}) concerns it and is neither evidence nor left out")
                else:
                    named.add((whole[0], key))
        found += [
            f"{entry.key}: {key} is its evidence, and does not state that it concerns it"
            for entry in entries
            for key in (*entry.evidence, *entry.left_out)
            if key.startswith(f"study:{name}#") and (entry.key, key) not in named
        ]
    return found


def _wrongs(entry: Entry, records: Records) -> list[str]:
    found = []
    if entry.relation not in RELATIONS:
        found.append(f"relation {entry.relation!r}: allowed are {', '.join(RELATIONS)}")
    if bool(entry.because) != bool(entry.left_out):
        found.append("because: needed where evidence is left out, and only there")
    if not entry.evidence and entry.relation != UNJUDGED:
        found.append("evidence: a verdict needs some")
    if entry.relation == UNJUDGED and not entry.reason:
        found.append("reason: needed where nothing is judged")
    every = [*entry.evidence, *entry.left_out]
    found += [f"{key}: twice" for key, n in Counter(every).items() if n > 1]
    try:
        judged(entry, records)
    except KeyRefused as error:
        found.append(str(error))
    return found


# --- the command --------------------------------------------------------------------------------------------------


def show_index(names: Sequence[str] = (), index: Any = INDEX, figures: Any = FIGURES, say: Callable = print) -> int:
    """Print the verdicts of entries with their evidence, and errors in the index.

    Parameters
    ----------
    names : sequence of str
        Sources, keys of entries, or the beginning of keys; by default all.
    index, figures : path-like
        The index, and the folder of the figures with the records.
    say : callable
        Called with the lines of output.

    Returns
    -------
    int
        1 if anything is wrong, else 0.

    Raises
    ------
    ConfigurationError
        If there is no such index, or no such entry.
    """
    from ..studies.shared.configuration import shipped_studies

    entries, records = read_index(index), Records(figures)
    chosen = [entry for entry in entries if not names or entry.key.startswith(tuple(names))]
    if not chosen:
        raise ConfigurationError(f"no entry begins with {', '.join(names)}; sources: {entries[0].source}, ...")
    wrong = complaints(entries, records, shipped_studies())
    counts: Counter[str] = Counter()
    for entry in chosen:
        try:
            one = judged(entry, records)
        except KeyRefused:
            continue  # it is among the complaints
        counts[f"{one.verdict}, {entry.relation}"] += 1
        say(f"{entry.key}: {one.verdict}, {entry.relation}")
        for part, mark in ((one.evidence, " "), (one.left_out, "-")):
            for each in part if names else ():
                say(f"  {mark} {each.status:<13} {each.key}")
        for text in (one.measured, one.because) if names else ():
            say(f"    {text}" if text else "")
    say("")
    for verdict, count in counts.most_common():
        say(f"{count:5d}  {verdict}")
    for line in wrong:
        say(f"wrong: {line}")
    return 1 if wrong else 0
