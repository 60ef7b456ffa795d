"""Worst cases: what semidefinite programs say of a method on a class of functions, and instances that are run."""

from .case_list import CASES
from .cases import Case, Solution, kept_solutions, solution_of
from .comparison import Comparison, compared, gap_between
from .instances import TOLERANCE, WorstCase, instance, worst_case
from .interpolation import Interpolant, RecordedMessages, interpolant
