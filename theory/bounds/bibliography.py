"""The sources: their BibTeX in ``bibliography.bib``, how a sentence names them, and how well each is known.

A text refers to a source by its key in brackets: ``[alistarh2017qsgd], Lemma 3.1``.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

KNOWLEDGE = {
    "read": "read in the source's own text",
    "quoted": "read at one remove: in a talk, a transcript, a write-up by others, or the code",
    "remembered": "from memory, not checked in a text",
    "derived": "derived here",
}
MANY = 6  # of more authors only the first is named
KEY = re.compile(r"\[([a-z]+\d{4}[a-z0-9]+)\]")


@functools.cache
def entries() -> dict[str, str]:
    """The BibTeX entries by their keys, without the fields that are ours."""
    return {key: re.sub(r",\n  (?:shorthand|known)\s*= \{.*\}", "", entry) for key, entry in _entries().items()}


@functools.cache
def _entries() -> dict[str, str]:
    text = (Path(__file__).parent / "bibliography.bib").read_text(encoding="utf-8")
    return {entry.split("{", 1)[1].split(",", 1)[0]: entry.strip() for entry in re.split(r"\n(?=@)", text)[1:]}


@functools.cache
def fields(key: str) -> dict[str, str]:
    """The fields of one entry; their values, without the outer braces, may have several lines."""
    found = re.findall(r"^  (\w+)\s*= \{(.*?)\}(?=,\n  \w+\s*= |\n\})", _entries()[key], re.DOTALL | re.MULTILINE)
    return {name: " ".join(value.split()) for name, value in found}


def keys(text: str) -> list[str]:
    """The keys that a text refers to.

    Examples
    --------
    >>> keys("derived; sharpens [alistarh2017qsgd], Lemma 3.1 (ii)")
    ['alistarh2017qsgd']
    """
    return KEY.findall(text)


def cited(text: str) -> str:
    """The text with sources named in words.

    Examples
    --------
    >>> cited("[alistarh2017qsgd], Lemma 3.1")
    'Alistarh, Grubic, Li, Tomioka, Vojnovic, QSGD, NIPS 2017, Lemma 3.1'
    """
    return KEY.sub(lambda found: _named(found[1]) if found[1] in entries() else found[0], text)


@functools.cache
def _named(key: str) -> str:
    entry = fields(key)
    authors = [author.partition(",")[0] for author in entry["author"].split(" and ")]
    listed = f"{authors[0]} et al." if len(authors) > MANY or "others" in authors else ", ".join(authors)
    plain = re.sub(r"\{\\(?:['`\"^~]|[vc] )?([A-Za-z])\}|[{}]", r"\1", listed)  # without accents
    return f"{plain}, {entry['shorthand']}"


def source_known(source: str) -> str:
    """How the source of a statement is known: "read", "quoted", "remembered", or "derived" for what is derived here.

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
