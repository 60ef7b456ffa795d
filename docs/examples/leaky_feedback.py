"""Error feedback that forgets: of what a message left out, only a share is stored.

::

    for every worker:     p = eta g + e
                          send Delta = Q(p)
                          e = share (p - Delta)
    x = x - mean of Delta
"""

from typing import NamedTuple

from theory.core import require, setting


@setting
class LeakyFeedback(NamedTuple):
    """Share 1 is error feedback, share 0 no feedback at all."""

    share: float

    listed = True  # load and store call operations of the run and nothing else

    def domain(self):
        """Refuse values outside the domain."""
        require(0.0 <= self.share <= 1.0, "share", self.share, "a number from 0 to 1")

    def load(self, run):
        """Before the gradients are added: p = e, and in its place."""
        e = run.memory()
        return e  # p is e from here on

    def store(self, run, p, message):
        """After compression: e = share (p - Delta); p is e."""
        run.add(p, message, scale=-1.0)  # p = p - Delta
        run.scale(p, self.share)  # p = share p

    def error(self, run):
        """What the workers kept, for ``result.memory``."""
        return run.read(run.memory())
