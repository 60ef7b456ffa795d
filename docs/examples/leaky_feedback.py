"""Error feedback that forgets: of what a message left out, only a share is kept.

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

    def load(self, run, l2=0.0):
        """The vectors to compress, before the gradients are added: p = e + l2 x, where e is."""
        e = run.memory()
        run.add(e, run.x, scale=l2)
        return e

    def store(self, run, p, message):
        """After compression: e = share (p - Delta), where p is."""
        run.add(p, message, scale=-1.0)
        run.scale(p, self.share)

    def error(self, run):
        """What the workers kept, for ``result.memory``."""
        return run.read(run.memory())
