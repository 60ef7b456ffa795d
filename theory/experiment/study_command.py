"""The command ``study``: experiments that are studies, one after the other or shared by ranks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .ranks import from_root, shared_out


def study_all(
    experiments: Any, quick: bool, figures: Any, markdown: Any, say: Callable[[str], object], comm: Any = None
) -> int:
    """Measure and show studies; with several ranks these share the studies, and rank 0 shows.

    Studies that run on ranks themselves are measured by all of them together.

    Parameters
    ----------
    experiments : sequence of StudyConfiguration
    quick : bool
    figures, markdown : str, optional
        As in :func:`theory.studies.show_studies`.
    say : callable
        Called with the lines of output.
    comm : mpi4py communicator, optional

    Returns
    -------
    int
        0, 1 if a record cannot be written, or 130 after an interruption: what was measured is shown.
    """
    from ..studies import measure, show_studies, takes_ranks

    if comm is None or comm.Get_size() == 1:
        return show_studies([(e, partial(measure, e, quick)) for e in experiments], quick, figures, markdown, say)
    if comm.Get_rank() == 0:
        say(f"studies: {len(experiments)}, on {comm.Get_size()} ranks; they are shown when all are done")
    together = [e for e in experiments if takes_ranks(e.study)]
    apart = [e for e in experiments if e not in together]
    found, interrupted = shared_out(comm, apart, lambda e: measure(e, quick))
    measured: list = [(apart[k], partial(found.get, k)) for k in sorted(found)]
    for e in together if not interrupted else []:
        values = measure(e, quick, comm)  # on all ranks, from which rank 0 shows its own
        measured.append((e, lambda values=values: values))
    code = from_root(comm, lambda: show_studies(measured, quick, figures, markdown, say))
    return 130 if interrupted else code
