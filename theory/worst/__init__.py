"""Worst cases of methods on classes of functions, from semidefinite programs, and instances that can be run."""

from .cases import CASES, Case, Solution, solution_of, stored_solutions
from .instances import TOLERANCE, WorstCase, instance, worst_case
from .interpolation import Interpolant, RecordedMessages, interpolant
from .solver import Comparison, compared, gap_between
