"""Round functions that misuse the operations of a run: state machines of hypothesis, run by ``test_misuse.py``.

``python misuse_job.py EXAMPLES FILE``, where FILE gets the steps of the current example before each is taken, so that
they can be read after a crash.  Kernels check bounds here, and what they find ends the example, too.
"""

from __future__ import annotations

import contextlib
import copy
import faulthandler
import os
import re
import sys
import traceback
import warnings
from typing import NamedTuple

if __name__ == "__main__":  # and not where doctests are looked for, whose process would compile so from then on
    os.environ["NUMBA_BOUNDSCHECK"] = "1"  # before Numba is imported

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from hypothesis import HealthCheck, Phase, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test  # noqa: E402

import theory as th  # noqa: E402
from theory.cluster.calls import in_round, list_calls  # noqa: E402
from theory.cluster.context import after_rounds  # noqa: E402
from theory.cluster.driver import make_run  # noqa: E402
from theory.cluster.history import row_of  # noqa: E402
from theory.cluster.setup import prepare  # noqa: E402
from theory.cluster.simulator import Memory  # noqa: E402

D, WORKERS = 5, 3
TOLD = re.compile(r"got .*, allowed: ", re.DOTALL)
broken: list[str] = []  # exceptions in kernels, which cannot raise them
faults: dict[str, str] = {}  # what went wrong, and the first call in which it did
counts = {"examples": 0, "accepted": 0, "refused": 0}

rng = np.random.default_rng(0)
CENTRES = rng.standard_normal((WORKERS, D))
ROWS = sp.csr_matrix(rng.standard_normal((12, D)) * (rng.random((12, D)) < 0.6))
SIGNS = np.sign(rng.standard_normal(12))
STEP = th.Constant(0.1)


@th.method
class Own(NamedTuple):
    step: NamedTuple = STEP
    compressor: NamedTuple = th.Identity()
    one_by_one = True

    def round(self, run):
        """What the rules do."""


@th.method
class OwnModels(NamedTuple):
    step: NamedTuple = STEP
    compressor: NamedTuple = th.Identity()
    models = "workers"
    one_by_one = True

    def round(self, run):
        """What the rules do."""


MEMORY = dict(compressor=th.TopK(2), step=STEP, feedback=th.ErrorFeedback())


def function():
    return th.function(lambda x: 0.5 * float(((x - CENTRES) ** 2).sum()), lambda x: x - CENTRES, d=D, n=WORKERS)


def dense():
    return th.ridge((ROWS.toarray(), SIGNS.copy()), l2=0.1)


def sparse():
    return th.logistic((ROWS.copy(), SIGNS.copy()), l2=0.1)


RUNS = {
    "dense": (Own(), function),
    "dense rows": (Own(), dense),
    "models": (OwnModels(), function),
    "sparse": (th.ParallelSGD(**MEMORY), sparse),
    "moving": (th.ParallelSGD(**MEMORY, server=th.Momentum(0.5)), sparse),
    "local": (th.LocalSGD(**MEMORY, local_steps=2), sparse),
    "projected": (th.ParallelSGD(th.Identity(sparse=True), step=STEP, server=th.Projected(1.0)), sparse),
}


def start(name):
    """A run of its own data, whose arrays may be spoilt."""
    method, problem = RUNS[name]
    given = dict(workers=WORKERS, steps=100, compression_error=name == "dense")
    return make_run(prepare(method, problem(), **given), Memory())


class Liar(np.ndarray):
    """Says that it has the shape that everybody wants."""

    shape = property(lambda self: (1, WORKERS, D))


KINDS = {
    "plain": lambda whole: whole,
    "float32": lambda whole: whole.astype(np.float32),
    "strided": lambda whole: np.repeat(whole[..., None], 2, axis=-1)[..., 0],
    "read-only": lambda whole: np.broadcast_to(np.float64(0.5), whole.shape),
    "float16": lambda whole: whole.astype(np.float16),
    "big-endian": lambda whole: whole.astype(">f8"),
    "long double": lambda whole: whole.astype(np.longdouble),
    "integers": lambda whole: whole.astype(np.int64),
    "complex": lambda whole: whole.astype(complex),
    "objects": lambda whole: whole.astype(object),
    "masked": lambda whole: np.ma.masked_array(whole),
    "a subclass": lambda whole: whole.view(Liar),
    "NaN": lambda whole: np.full(whole.shape, np.nan),
    "huge": lambda whole: np.full(whole.shape, 1e308),
}
SHAPES = ((1, WORKERS, D), (1, 1, D), (1, WORKERS, D + 1), (D,), (1, 0, D), (2, WORKERS, D), (1, WORKERS, D, 1), ())
ODD = (None, "p", 3, 0.0, 1.5, True, object(), [1.0] * D, (1, 2), th.TopK(2), np.float64(2.0))
NUMBERS = (1.0, -1.0, 0.0, 0.3, 2, True, np.float32(0.5), np.nan, np.inf, -(2**70), "1", None, 1j, [1.0], np.ones(2))
COMPRESSORS = (
    th.TopK(2),
    th.QSGD(4),
    th.Identity(),
    th.TernGrad(shared=True),
    th.compressor(lambda v: np.round(v, 1)),
    th.compressor(lambda v: v[:-1]),
    th.TopK(D + 1),
    th.TopK(2)._replace(k=-5),
    th.TopK(2)._replace(k="two"),
    tuple.__new__(th.QSGD, (0,) * len(th.QSGD._fields)),
    th.TopK,
    None,
    3,
)
NAMES = ("p", "q", "velocity", "up", "down", "sent", "scalars", "p, count", "s, stored bits", 3, None, ["p"], "")
number, name = st.sampled_from((1.0, 0.3, -1.0) * 4 + NUMBERS), st.sampled_from(NAMES)
compressor = st.sampled_from(COMPRESSORS[:5] * 2 + COMPRESSORS)
place = st.integers(0, 2**16)


class Misuse(RuleBasedStateMachine):
    """One run, another one whose things are foreign, and what was made so far, good and bad."""

    kinds: tuple[str, ...] = ()

    @initialize(kind=st.data(), listed=st.booleans())
    def begin(self, kind, listed):
        which = kind.draw(st.sampled_from(self.kinds))
        self.t, self.listed = 0, listed
        self.run, other = start(which), start(which)
        with in_round(self.run, 0):
            self.run.rates.stretch(0, 100)
        self.odd, self.own = [*ODD, self.run.eta], []
        for run, things in ((self.run, self.own), (other, self.odd)):
            things.append(run.x)
            with in_round(run, 0):
                for make in (run.scratch, run.memory, lambda: run.rows("p"), lambda: self.message_of(run)):  # noqa: B023
                    with contextlib.suppress(ValueError):
                        things.append(make())
        counts["examples"] += 1
        self.note(f"--- {which}, {'listed' if listed else 'round by round'}")

    def message_of(self, run):
        return run.gather(run.compress(run.setup.method.compressor, run.scratch()))

    def note(self, text):
        log.write(text + "\n")
        log.flush()

    def pick(self, at):
        """Mostly something that the run has made."""
        things = self.own if at % 5 else self.odd
        return things[at // 5 % len(things)]

    def attempt(self, text, act):
        """An operation: it works, or an exception says which argument is wrong."""
        self.note(text)
        try:
            if self.listed:
                made = []
                calls = list_calls(self.run, lambda run: made.append(act()))
                for call in calls:
                    call(self.t)
            else:
                with in_round(self.run, self.t):
                    made = [act()]
            self.own += [thing for thing in made if thing is not None]
            counts["accepted"] += 1
        except (AttributeError, TypeError, ValueError) as error:
            counts["refused"] += 1
            if not (TOLD.search(str(error)) or NUMPY.search(str(error))):
                self.wrong(text, error)
        except Exception as error:
            self.wrong(text, error)
        if broken:
            self.wrong(text, broken.pop())

    def wrong(self, text, error):
        trace = traceback.extract_tb(getattr(error, "__traceback__", None))
        where = [f"{frame.filename[-30:]}:{frame.lineno}" for frame in trace[-3:]]
        found = f"{text.partition('(')[0]}: {type(error).__name__}: {str(error)[:150]}"
        faults.setdefault(found, f"{text} {where}")

    # --- what is made ------------------------------------------------------------------------------------------------

    @rule(shape=st.sampled_from(SHAPES), kind=st.sampled_from(tuple(KINDS)))
    def array(self, shape, kind):
        """An array that NumPy thinks well of, and an operation may not."""
        self.odd.append(KINDS[kind](np.linspace(-1.0, 1.0, int(np.prod(shape))).reshape(shape)))

    @rule(which=st.sampled_from(("rows", "vector", "copies")), name=name)
    def make(self, which, name):
        self.attempt(f"{which}({name!r})", lambda: getattr(self.run, which)(name))

    @rule(name=name, shape=st.sampled_from(SHAPES), dtype=st.sampled_from((float, np.int64, np.uint8, "f4")))
    def own_array(self, name, shape, dtype):
        self.attempt(f"array({name!r}, {shape}, {dtype})", lambda: self.run.array(name, shape, dtype))

    @rule(which=st.sampled_from(("scratch", "memory", "local")))
    def usual(self, which):
        def act():
            made = getattr(self.run, which)()
            self.own += made if isinstance(made, tuple) else [made]

        self.attempt(f"{which}()", act)

    @rule(at=place)
    def own_rows(self, at):
        self.attempt(f"own({at})", lambda: self.run.own(self.pick(at)))

    @rule(name=name, c=compressor)
    def stored(self, name, c):
        self.attempt(f"stored({name!r}, {c})", lambda: self.run.stored(name, c))

    # --- sums --------------------------------------------------------------------------------------------------------

    @rule(y=place, x=place, scale=number)
    def set(self, y, x, scale):
        y, x = self.pick(y), self.pick(x)
        self.attempt(f"set({told(y)}, {told(x)}, {scale!r})", lambda: self.run.set(y, x, scale))

    @rule(y=place, x=place, scale=number, keep=number)
    def add(self, y, x, scale, keep):
        y, x = self.pick(y), self.pick(x)
        told_ = f"add({told(y)}, {told(x)}, {scale!r}, keep={keep!r})"
        self.attempt(told_, lambda: self.run.add(y, x, scale, keep=keep))

    @rule(y=place, x=place)
    def add_plainly(self, y, x):
        y, x = self.pick(y), self.pick(x)
        self.attempt(f"add({told(y)}, {told(x)})", lambda: self.run.add(y, x))

    @rule(y=place, x=place, z=place)
    def add_difference(self, y, x, z):
        y, x, z = self.pick(y), self.pick(x), self.pick(z)
        self.attempt(f"add({told(y)}, {told(x)}, minus={told(z)})", lambda: self.run.add(y, x, minus=z))

    @rule(y=place, x=place, W=st.sampled_from(("fitting", "short", "mine", "integers", 3)), at=place)
    def add_weighted(self, y, x, W, at):
        y, x = self.pick(y), self.pick(x)
        rows = getattr(y, "shape", (0, 0))[1:2] or (0,)
        weights = {"fitting": np.ones((rows[0], WORKERS)), "short": np.ones((1, 1)), "mine": self.pick(at)}.get(W, W)
        self.attempt(f"add({told(y)}, {told(x)}, weights={W})", lambda: self.run.add(y, x, weights=weights))

    @rule(y=place, factor=number)
    def scale(self, y, factor):
        y = self.pick(y)
        self.attempt(f"scale({told(y)}, {factor!r})", lambda: self.run.scale(y, factor))

    # --- gradients and messages --------------------------------------------------------------------------------------

    @rule(p=place, x=place, scale=number, which=st.sampled_from(("set_gradient", "add_gradient", "add_loss_gradient")))
    def gradient(self, p, x, scale, which):
        p, x = self.pick(p), self.pick(x)
        self.attempt(f"{which}({told(p)}, at={told(x)})", lambda: getattr(self.run, which)(p, at=x, scale=scale))

    @rule(p=place, c=compressor, reduce=st.booleans(), phase=st.sampled_from(("up", "up", "two", "down", 3, ["up"])))
    def compress(self, p, c, reduce, phase):
        p = self.pick(p)
        told_ = f"compress({c}, {told(p)}, reduce={reduce}, phase={phase!r})"
        self.attempt(told_, lambda: self.run.compress(c, p, reduce=reduce, phase=phase))

    @rule(m=place, which=st.sampled_from(("gather", "reduce", "broadcast", "scatter")))
    def exchange(self, m, which):
        m = self.pick(m)
        self.attempt(f"{which}({told(m)})", lambda: getattr(self.run, which)(m))

    @rule(m=place, graph=st.sampled_from((th.Ring(), th.Complete(), None, 3)))
    def hear(self, m, graph):
        m = self.pick(m)
        self.attempt(f"hear({told(m)}, mixing({graph}))", lambda: self.run.hear(m, self.run.mixing(graph)))

    # --- servers, clients --------------------------------------------------------------------------------------------

    @rule(x=place, radius=number)
    def project(self, x, radius):
        x = self.pick(x)
        self.attempt(f"project({told(x)}, {radius!r})", lambda: self.run.project(x, radius))

    @rule(x=place)
    def sign(self, x):
        x = self.pick(x)
        self.attempt(f"sign({told(x)})", lambda: self.run.sign(x))

    @rule(m=place, v=place, g=place, beta=number)
    def moments(self, m, v, g, beta):
        m, v, g = self.pick(m), self.pick(v), self.pick(g)
        told_ = f"update_moments({told(m)}, {told(v)}, of={told(g)}, beta={beta!r})"
        self.attempt(told_, lambda: self.run.update_moments(m, v, of=g, beta1=beta, beta2=0.9))

    @rule(u=place, m=place, v=place, unbias=st.sampled_from(((0.9, 0.99), (0.9,), 0.9, ("a", "b"), None)))
    def divide(self, u, m, v, unbias):
        u, m, v = self.pick(u), self.pick(m), self.pick(v)
        told_ = f"divide({told(u)}, {told(m)}, {told(v)}, {unbias})"
        self.attempt(told_, lambda: self.run.divide(u, m, by_root_of=v, eps=0.1, unbias=unbias))

    @rule(u=place, x=place, ends=st.sampled_from(([2, D], [D + 1], [-1, D], [3, 1], [], [0.5, D], "01", None)))
    def rescale_layers(self, u, x, ends):
        u, x = self.pick(u), self.pick(x)
        layers = None if ends is None else tuple(map(slice, [0, *ends], ends))
        told_ = f"rescale_layers({told(u)}, {told(x)}, {layers})"
        self.attempt(told_, lambda: self.run.rescale_layers(u, x, layers=layers))

    @rule(x=place, local=st.booleans())
    def average(self, x, local):
        x = self.pick(x)
        act = self.run.add_local_to_average if local else self.run.add_to_average
        self.attempt(f"add_to_average({told(x)}, {local})", lambda: act(x))

    @rule(clients=st.sampled_from((1, 2, WORKERS, 0, WORKERS + 1, True, 1.5, None, "2")))
    def choose(self, clients):
        self.attempt(f"choose({clients!r})", lambda: self.run.choose(clients))

    @rule(
        chosen=st.sampled_from(([0, 2], [2, 0], [WORKERS], [-1], [0.5], [], [[0]], 7)),
        weights=st.sampled_from((np.ones(WORKERS), np.ones(2), np.ones(WORKERS, complex), None)),
        every=st.booleans(),
    )
    def act(self, chosen, weights, every):
        given = [np.array(chosen)] * 200 if every else chosen
        self.attempt(f"act({chosen}, {weights}, {every})", lambda: self.run.act(given, weights))

    @rule()
    def next_round(self):
        self.t += 1

    @rule()
    def record(self):
        """What the driver reads of a run at a record, between rounds."""
        self.note("record")
        try:
            with after_rounds(self.run, self.t):
                self.run.setup.method.result(self.run)
            row_of(self.run.setup, self.t, self.run.transport.total(self.run).sum(axis=0), self.run.nanoseconds, 0.0)
            counts["accepted"] += 1
        except (AttributeError, TypeError, ValueError) as error:
            counts["refused"] += 1
            if not TOLD.search(str(error)):
                self.wrong("record", error)

    # --- what is done behind the run's back --------------------------------------------------------------------------

    def tamper(self, text, act):
        """Python or NumPy may refuse it; if not, the run has to live with it."""
        self.note(text)
        try:
            made = act()
        except Exception:
            return
        if made is not None:
            self.odd.append(made)

    @rule(at=place, value=st.sampled_from((0, -1, 2**31 - 1, 10**9, np.nan)), part=st.sampled_from(range(5)))
    def write_symbols(self, at, value, part):
        def act():
            array = self.pick(at).symbols[part]
            array.flags.writeable = True
            array[...] = value

        self.tamper(f"write {value} into symbols {part} of {told(self.pick(at))}", act)

    @rule(at=place, value=st.sampled_from((np.nan, -np.inf, 1e300, 0.0, 1.0)))
    def write(self, at, value):
        self.tamper(f"fill {told(self.pick(at))} with {value}", lambda: self.pick(at).fill(value))

    @rule(at=place, other=place, how=st.sampled_from(("_replace", "set", "copy", "class", "delete", "setattr")))
    def change_a_tuple(self, at, other, how):
        thing, part = self.pick(at), self.pick(other)
        acts = {
            "_replace": lambda: thing._replace(compressor=th.Identity(), weight=np.ones(0)),
            "set": lambda: setattr(thing, "compressor", th.Identity()),
            "copy": lambda: copy.copy(thing),
            "class": lambda: type(thing)(part),
            "delete": lambda: delattr(thing, "symbols"),
            "setattr": lambda: setattr(thing, "symbols", part),
        }
        self.tamper(f"{how} {told(thing)}", acts[how])

    @rule(at=place, how=st.sampled_from(("shape", "strides", "dtype", "resize", "larger", "writeable")))
    def change_a_layout(self, at, how):
        a = self.pick(at)
        acts = {
            "shape": lambda: setattr(a, "shape", (D, 1, a.shape[1])),
            "strides": lambda: setattr(a, "strides", (0,) * a.ndim),
            "dtype": lambda: setattr(a, "dtype", np.int64),
            "resize": lambda: a.resize((1, 1, 1), refcheck=False),
            "larger": lambda: a.resize((1, WORKERS, 10**6), refcheck=False),
            "writeable": lambda: setattr(a.flags, "writeable", False),
        }
        self.tamper(f"change {how} of {told(a)}", acts[how])

    @rule(
        which=st.sampled_from(("active", "heard", "single", "watched", "order", "weight", "sent", "setup", "links")),
        value=st.sampled_from((2**40, -1, -(2**40))),
        how=st.sampled_from(("write", "shape", "dtype", "resize", "assign")),
    )
    def change_the_run(self, which, value, how):
        def act():
            if how == "assign":
                setattr(self.run, which, self.odd[value % len(ODD)])
            found = getattr(self.run, which)
            found = (*found.shards, found.batches, found.watched, found.problem) if which == "setup" else found
            for array in found if isinstance(found, tuple) else (found,):
                try:
                    if how == "write" and array.dtype.kind in "iu":
                        array[...] = value
                    elif how == "shape":
                        array.shape = (array.size, 1)
                    elif how == "dtype":
                        array.dtype = np.uint32
                    elif how == "resize":
                        array.resize((0,), refcheck=False)
                except (AttributeError, TypeError, ValueError):
                    pass

        self.tamper(f"{how} run.{which} {value}", act)

    @rule(which=st.sampled_from(("d", "replicas", "workers", "workers_here", "first_here", "rates", "x", "problem")))
    def assign(self, which):
        self.tamper(f"run.{which} = 2**20", lambda: setattr(self.run, which, 2**20))

    @rule(key=st.sampled_from(("ones", "ones of all", ("phase", "up"), ("heard", "up"), "scratch", "memory", "all")))
    def once(self, key):
        self.tamper(f"once({key!r})", lambda: self.run.once(key, lambda: np.ones(0)))


class Dense(Misuse):
    kinds = ("dense", "dense rows", "models")


class Sparse(Misuse):
    kinds = ("sparse", "moving", "local", "projected")


NUMPY = re.compile(r"read-only|cannot set WRITEABLE|must be non-negative")


def told(thing):
    if isinstance(thing, np.ndarray):
        try:
            shown = np.ndarray.__repr__(thing)[:40]
        except Exception as error:  # a subclass may say anything of its shape
            shown = f"not shown: {error}"
        return f"{type(thing).__name__}({shown!r}, {thing.dtype}, strides {thing.strides})"
    return repr(thing)[:60] if not hasattr(thing, "compressor") else type(thing).__name__


if __name__ == "__main__":
    faulthandler.enable()
    warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy, for strides that are set
    sys.unraisablehook = lambda found: broken.append(f"{found.object}: {found.exc_value!r}")
    examples, path = int(sys.argv[1]), sys.argv[2]
    with open(path, "w") as log:
        for machine, share in ((Dense, 0.5), (Sparse, 0.5)):
            options = settings(
                max_examples=int(share * examples),
                stateful_step_count=20,
                deadline=None,
                derandomize=len(sys.argv) < 4,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.generate,),  # the steps are in the file
            )
            with contextlib.suppress(KeyboardInterrupt):  # what was found until then is said
                run_state_machine_as_test(machine, settings=options)
    for fault, call in faults.items():
        print(fault, call, sep="\n    ")
    print(f"{counts['examples']} examples, {counts['accepted']} calls accepted, {counts['refused']} refused")
    sys.exit(bool(faults))
