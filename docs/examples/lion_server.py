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

    state = ("m",)  # what is kept from step to step: counted in result.server_bytes, returned in result.server
    takes_step = True  # memories hold gradients, not gradients times the step size
    listed = True  # update calls operations of the run and nothing else

    def domain(self):
        """Refuse values outside the domain."""
        for name in self._fields:
            require(0.0 <= getattr(self, name) < 1.0, name, getattr(self, name), "a number from 0 to below 1")

    def update(self, run, received):
        """One step of the model, the same at every worker."""
        g, m, c = run.model("g"), run.model("m"), run.model("c")
        run.set(g, run.x, run.own_l2)  # 0, or with compress="loss" the gradient of the l2 term
        run.accumulate(received, g)  # g = mean of what was received
        run.set(c, m, -self.beta1)
        run.add(c, g, self.beta1 - 1.0)  # c = -(beta1 m + (1 - beta1) g)
        run.vote(c)  # its sign, -1 where it is 0
        run.add(run.x, c, run.outside)
        run.mix(m, self.beta2, g, 1.0 - self.beta2)
