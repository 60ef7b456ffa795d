"""Lion on the server: x moves by the sign of an interpolation between the momentum and the new gradient.

::

    g = mean of what was received
    x = x - eta sign(beta1 m + (1 - beta1) g)
    m = beta2 m + (1 - beta2) g
"""

from typing import NamedTuple

from theory.core import require, setting


@setting
class Lion(NamedTuple):
    """The sign of 0 is +1, as for `theory.Sign`."""

    beta1: float = 0.9
    beta2: float = 0.99

    state = ("m",)  # what is stored from step to step: counted in result.server_bytes, returned in result.server
    takes_step = True  # memories hold gradients, not gradients times the step size
    listed = True  # update calls operations of the run and nothing else
    by_coordinate = True  # each coordinate moves by itself, so that Sharded may divide the rule

    def domain(self):
        """Refuse values outside the domain."""
        for name in self._fields:
            require(0.0 <= getattr(self, name) < 1.0, name, getattr(self, name), "a number from 0 to below 1")

    def update(self, run, received):
        """One step of the model, the same at every worker."""
        g, m, c = run.vector("g"), run.vector("m"), run.vector("c")
        run.set(g, run.x, scale=run.local_l2)  # 0, or with compress="loss" the gradient of the l2 term
        run.add(g, received)  # g = mean of what was received
        run.set(c, m, scale=-self.beta1)
        run.add(c, g, scale=self.beta1 - 1.0)  # c = -(beta1 m + (1 - beta1) g)
        run.sign(c)  # -1 where it is 0
        run.add(run.x, c, scale=run.eta_received)
        run.add(m, g, keep=self.beta2, scale=1.0 - self.beta2)  # m = beta2 m + (1 - beta2) g
