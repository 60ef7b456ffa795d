"""Worst cases: what semidefinite programs say of a method on a class of functions, and instances that are run."""

from .cases import CASES, Case, Solution, solution_of, stored_solutions
from .instances import TOLERANCE, WorstCase, instance, worst_case
from .interpolation import Interpolant, RecordedMessages, interpolant
from .solver import Comparison, compared, gap_between
