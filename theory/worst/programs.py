"""Methods as programs over a *world*: unknown vectors give a semidefinite program, and numbers give an instance.

A world provides ``workers`` functions whose mean has its minimum at 0, a ``start``, and messages.  ``solver.Unknowns``
returns unknown vectors, and ``instances.Solved`` those of a solution in the same order; the result of a program is
measured by `MEASURES`.  Programs are compared with `theory.run`: if a program differed from the method, no run would
reach its value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class State(NamedTuple):
    """The final state of a program: the model, and the memories of error feedback."""

    x: Any
    memories: tuple = ()


class World:
    """The interface of programs to functions and messages; a subclass computes the answers.

    Parameters
    ----------
    workers : int
    s : float
        sqrt(1 - delta) of the compressor.
    """

    start: Any

    def __init__(self, workers: int, s: float) -> None:
        self.workers, self.s = workers, s
        self._looked: dict[tuple[int, int], tuple] = {}

    def look(self, i: int, x: Any) -> tuple[Any, Any]:
        """Gradient and value of f_i at a new point; if L is infinite, of its Moreau envelope."""
        raise NotImplementedError

    def send(self, i: int, v: Any) -> Any:
        """The message of worker i for v: some C(v) with ||C(v) - v|| <= s ||v||."""
        raise NotImplementedError

    def square(self, v: Any) -> Any:
        """||v||^2."""
        raise NotImplementedError

    def _known(self, i: int, x: Any) -> tuple:
        if (i, id(x)) not in self._looked:
            self._looked[i, id(x)] = (*self.look(i, x), x)  # with x, so that its id stays unique
        return self._looked[i, id(x)]

    def gradient(self, i: int, x: Any) -> Any:
        """The gradient of f_i at x."""
        return self._known(i, x)[0]

    def proximal(self, i: int, x: Any, length: float) -> Any:
        """The minimiser of f_i(y) + ||y - x||^2/(2 length): a gradient step on the Moreau envelope."""
        return x - length * self._known(i, x)[0]

    def gap(self, x: Any) -> Any:
        """The mean of the f_i at x; at the minimum it is 0."""
        return mean([self._known(i, x)[1] for i in range(self.workers)])


def mean(vectors: Any) -> Any:
    """The mean of vectors, known or not."""
    first, *others = vectors
    for one in others:
        first = first + one
    return first / (1 + len(others))


def gradients(w: Any, x: Any) -> list:
    """Each worker's gradient at x."""
    return [w.gradient(i, x) for i in range(w.workers)]


def descent(w: Any, steps: int, step: float) -> State:
    """Repeat x = x - eta mean grad f_i(x)."""
    x = w.start
    for _ in range(steps):
        x = x - step * mean(gradients(w, x))
    return State(x)


def compressed_descent(w: Any, steps: int, step: float) -> State:
    """Repeat x = x - eta mean C(grad f_i(x))."""
    x = w.start
    for _ in range(steps):
        x = x - step * mean([w.send(i, g) for i, g in enumerate(gradients(w, x))])
    return State(x)


def error_feedback(w: Any, steps: int, step: float) -> State:
    """Repeat p = e + eta grad f_i(x); x = x - mean C(p); e = p - C(p)."""
    x, e = w.start, [0.0 * w.start] * w.workers
    for _ in range(steps):
        p = [e[i] + step * g for i, g in enumerate(gradients(w, x))]
        sent = [w.send(i, v) for i, v in enumerate(p)]
        x, e = x - mean(sent), [v - c for v, c in zip(p, sent, strict=True)]
    return State(x, tuple(e))


def ef21(w: Any, steps: int, step: float) -> State:
    """Repeat h_i = h_i + C(grad f_i(x) - h_i); x = x - eta mean h_i."""
    x, h = w.start, [0.0 * w.start] * w.workers
    for _ in range(steps):
        h = [h[i] + w.send(i, g - h[i]) for i, g in enumerate(gradients(w, x))]
        x = x - step * mean(h)
    return State(x)


def heavy_ball(w: Any, steps: int, step: float, momentum: float) -> State:
    """Repeat u = beta u + mean grad f_i(x); x = x - eta u."""
    x, u = w.start, 0.0 * w.start
    for _ in range(steps):
        u = momentum * u + mean(gradients(w, x))
        x = x - step * u
    return State(x)


def local_descent(w: Any, steps: int, step: float, local_steps: int) -> State:
    """Each worker takes H local gradient steps from x, and their mean is the new x; ``steps`` counts gradients."""
    x = w.start
    for _ in range(steps // local_steps):
        y = [x] * w.workers
        for _ in range(local_steps):
            y = [y[i] - step * w.gradient(i, y[i]) for i in range(w.workers)]
        x = mean(y)
    return State(x)


def proximal_point(w: Any, steps: int, step: float) -> State:
    """Repeat x = the minimiser of f(y) + ||y - x||^2/(2 lambda)."""
    x = w.start
    for _ in range(steps):
        x = w.proximal(0, x, step)
    return State(x)


PROGRAMS: dict[str, Callable[..., State]] = {
    "descent": descent,
    "compressed": compressed_descent,
    "feedback": error_feedback,
    "ef21": ef21,
    "momentum": heavy_ball,
    "local": local_descent,
    "proximal": proximal_point,
}


def _distance(w: Any, state: State) -> Any:
    return w.square(state.x)


def _gap(w: Any, state: State) -> Any:
    return w.gap(state.x)


def _gradient(w: Any, state: State) -> Any:
    return w.square(mean(gradients(w, state.x)))


def _energy(w: Any, state: State) -> Any:
    if not state.memories:
        return w.square(state.x)
    squares = [w.square(e) for e in state.memories]
    return w.square(state.x - mean(state.memories)) + mean(squares) / w.s


MEASURES: dict[str, tuple[str, Callable[[Any, State], Any]]] = {  # words, and the number
    "distance": ("||x - x*||^2", _distance),
    "gap": ("f(x) - f*", _gap),
    "gradient": ("||grad f(x)||^2", _gradient),
    "energy": ("||x - x* - mean e||^2 + mean ||e||^2/s", _energy),
}
