"""The sources: their BibTeX in ``bibliography.bib``, their names in a sentence, and how well each source is known.

A text refers to a source by its key in brackets: ``[alistarh2017qsgd], Lemma 3.1``.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from pathlib import Path

KNOWLEDGE = {
    "read": "read in the source's own text",
    "quoted": "read indirectly: in a talk, a transcript, a text by others, or the code",
    "remembered": "from memory, not checked in a text",
    "derived": "derived here",
}
MANY = 6  # of more authors only the first is named
KEY = re.compile(r"\[([a-z]+\d{4}[a-z0-9]+)\]")
ACCENTS = {"'": "\u0301", "`": "\u0300", '"': "\u0308", "^": "\u0302", "~": "\u0303", "v": "\u030c", "c": "\u0327"}
LETTERS = {r"\L": "Ł", r"\l": "ł", r"\o": "ø", r"\O": "Ø", r"\i": "i", r"\&": "&"}


@functools.cache
def entries() -> dict[str, str]:
    """The BibTeX entries by their keys, without the fields that this package adds."""
    return {key: re.sub(r",\n  (?:shorthand|known)\s*= \{.*\}", "", entry) for key, entry in _entries().items()}


@functools.cache
def _entries() -> dict[str, str]:
    text = (Path(__file__).parent / "bibliography.bib").read_text(encoding="utf-8")
    return {entry.split("{", 1)[1].split(",", 1)[0]: entry.strip() for entry in re.split(r"\n(?=@)", text)[1:]}


@functools.cache
def fields(key: str) -> dict[str, str]:
    """The fields of one entry; their values, without the outer braces, may have several lines."""
    return parsed(_entries()[key])[1]


def parsed(entry: str) -> tuple[str, dict[str, str]]:
    """Kind and fields of any BibTeX entry whose values are in braces; other values are omitted.

    Examples
    --------
    >>> parsed("@misc{k, title = {On {SGD}}, year = 2020}")
    ('misc', {'title': 'On {SGD}'})
    """
    kind, found, place = re.match(r"\s*@?(\w*)", entry)[1], {}, 0  # type: ignore[index]
    head = re.compile(r"[,\s](\w+)\s*=\s*\{")
    while match := head.search(entry, place):
        depth, place = 1, match.end()
        while depth and place < len(entry):
            depth += {"{": 1, "}": -1}.get(entry[place], 0)
            place += 1
        found[match[1]] = " ".join(entry[match.end() : place - 1].split())
    return kind, found


def plain(value: str) -> str:
    r"""Text without TeX.

    Examples
    --------
    >>> plain(r"{\v L}udov{\'i}t, {QSGD}")
    'Ľudovít, QSGD'
    """
    value = re.sub(r"\\([vc])\s*\{?(\w)\}?", lambda m: m[2] + ACCENTS[m[1]], value)
    value = re.sub(r"\\(['`\"^~])\s*\{?\\?(\w)\}?", lambda m: m[2] + ACCENTS[m[1]], value)
    for name, letter in LETTERS.items():
        value = re.sub(re.escape(name) + r"(?![A-Za-z])", letter, value)
    return unicodedata.normalize("NFC", " ".join(value.replace("{", "").replace("}", "").split()))


def reference(entry: str) -> str:
    """A BibTeX entry as a line of a list of references: authors, year, title, place, DOI.

    Examples
    --------
    >>> print(reference(entries()["eckart1936approximation"]))  # doctest: +NORMALIZE_WHITESPACE
    Carl Eckart and Gale Young (1936). The approximation of one matrix by another of lower rank. Psychometrika 1(3).
    doi:10.1007/BF02288367
    """
    found = {name: plain(value) for name, value in parsed(entry)[1].items()}
    names = [" ".join(part.strip() for part in author.partition(",")[::-2]).strip() for author in _authors(found)]
    people = " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
    place = found.get("booktitle") or found.get("journal") or found.get("publisher") or ""
    issue = found.get("volume", "") + (f"({found['number']})" if "number" in found else "")
    pages = f", {found['pages']}" if "pages" in found else ""
    year = f"({found['year']})" if "year" in found else ""
    parts = (f"{people} {year}", found.get("title", ""), f"{place} {issue}".strip() + pages, found.get("note", ""))
    doi = f" doi:{found['doi']}" if "doi" in found else ""
    return " ".join(f"{part.strip().rstrip('.')}." for part in parts if part.strip()).replace("--", "–") + doi


def _authors(found: dict[str, str]) -> list[str]:
    return [author for author in found.get("author", "").split(" and ") if author]


def keys(text: str) -> list[str]:
    """The keys that a text refers to.

    Examples
    --------
    >>> keys("derived; sharpens [alistarh2017qsgd], Lemma 3.1 (ii)")
    ['alistarh2017qsgd']
    """
    return KEY.findall(text)


def cited(text: str, brief: bool = False) -> str:
    """The text with each key replaced by the source's name; with ``brief`` by authors and year alone.

    Examples
    --------
    >>> cited("[alistarh2017qsgd], Lemma 3.1")
    'Alistarh, Grubic, Li, Tomioka, Vojnovic, QSGD, NIPS 2017, Lemma 3.1'
    >>> cited("[alistarh2017qsgd], Lemma 3.1", brief=True)
    'Alistarh et al. 2017, Lemma 3.1'
    """
    return KEY.sub(lambda found: _named(found[1], brief) if found[1] in entries() else found[0], text)


@functools.cache
def _named(key: str, brief: bool) -> str:
    entry = fields(key)
    authors = [author.partition(",")[0] for author in _authors(entry)]
    few = 2 if brief else MANY
    listed = f"{authors[0]} et al." if len(authors) > few or "others" in authors else ", ".join(authors)
    bare = re.sub(r"\{\\(?:['`\"^~]|[vc] )?([A-Za-z])\}|[{}]", r"\1", listed)  # without accents
    return f"{bare} {entry['year']}" if brief else f"{bare}, {entry['shorthand']}"


def source_known(source: str) -> str:
    """How the source of a statement is known: "read", "quoted", "remembered", or "derived" if it is derived here.

    Parameters
    ----------
    source : str
        With keys in brackets, of which the first counts; or a key alone.

    Returns
    -------
    str
        "remembered" for a source of which nothing is recorded.

    Examples
    --------
    >>> source_known("[yin2018gradient], Lemma 1"), source_known("derived"), source_known("nobody1999")
    ('read', 'derived', 'remembered')
    """
    if source.startswith("derived"):
        return "derived"
    key = next(iter(keys(source)), source)
    return fields(key)["known"] if key in entries() else "remembered"
