"""Keys: the name of an entry of ``docs/sources/index.toml``, by which a statement says what it bears on."""

from __future__ import annotations

import re


def slug(text: object) -> str:
    """The text in lower case with hyphens for everything but letters and digits.

    Examples
    --------
    >>> slug("Figure 3, RCV1: loss against bits"), slug(0.25)
    ('figure-3-rcv1-loss-against-bits', '0-25')
    """
    return re.sub(r"[^a-z0-9]+", "-", str(text).lower()).strip("-")


def entry_key(source: str, id: str) -> str:
    """The key of an entry of the index of sources, by its source and its id.

    Examples
    --------
    >>> entry_key("mem-sgd", "Figure 3, RCV1: loss against bits")
    'mem-sgd/figure-3-rcv1-loss-against-bits'
    """
    return f"{source}/{slug(id)}"
