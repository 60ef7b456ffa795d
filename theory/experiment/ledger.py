"""``verify``: claims on the command line, in a ledger and as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

from .progress import on_terminal
from .records import versions


def verify_all(ids, seed: int, quick: bool, path: str | None, say) -> int:
    """Verify claims one after the other and show the ledger.

    An interruption shows, and writes, what was verified until then.

    Parameters
    ----------
    ids : sequence of str
    seed : int
    quick : bool
    path : str, optional
        Where the ledger goes as JSON.
    say : callable
        Gets the texts.

    Returns
    -------
    int
        1 if a claim is refuted that is not a refuted *printed* statement, or if a mutant survives; otherwise 0.
    """
    from ..claims import exit_code, ledger, verify

    results, interrupted = [], False
    try:
        for id in _watched(ids):
            results.append(verify(id, seed=seed, quick=quick))
    except KeyboardInterrupt:
        interrupted = True
    if results:
        say(str(ledger(results)))
    seconds = sum(result.seconds for result in results)
    tail = ", interrupted" if interrupted else ""
    say(f"{len(results)} of {len(ids)} claims in {seconds:.1f} s, seed {seed}{tail}")
    code = exit_code(results)
    if path is not None:
        content = {
            "seed": seed, "quick": quick, "versions": versions(), "interrupted": interrupted, "exit_code": code,
            "results": [result.as_dict() for result in results],
        }  # fmt: skip
        part = Path(f"{path}.part")
        part.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        os.replace(part, path)
        say(f"ledger: {path}")
    return 130 if interrupted else code


def _watched(ids):
    """The ids, with a bar on a terminal."""
    if not on_terminal():
        return ids
    from tqdm import tqdm

    bar = tqdm(ids, unit=" claims", ncols=100, leave=False)
    return (bar.set_description(id) or id for id in bar)
