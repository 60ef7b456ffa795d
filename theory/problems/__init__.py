"""Problems f(x) = (1/n) sum_i f_i(x): their kernels, their constants, and their minimum with a certificate."""

from theory.problems.constants import batch_bound as batch_bound
from theory.problems.constants import gradient_diversity as gradient_diversity
from theory.problems.constants import gradient_variance as gradient_variance
from theory.problems.constants import lipschitz as lipschitz
from theory.problems.constants import max_lipschitz as max_lipschitz
from theory.problems.constants import second_moment as second_moment
from theory.problems.constants import strong_convexity as strong_convexity
from theory.problems.evaluate import accuracy as accuracy
from theory.problems.evaluate import batch_gradient as batch_gradient
from theory.problems.evaluate import gradient as gradient
from theory.problems.evaluate import sample_gradient as sample_gradient
from theory.problems.evaluate import value as value
from theory.problems.linear import Logistic as Logistic
from theory.problems.linear import Ridge as Ridge
from theory.problems.linear import astype as astype
from theory.problems.linear import linear_problem as linear_problem
from theory.problems.linear import logistic as logistic
from theory.problems.linear import ridge as ridge
from theory.problems.matrix import CSR as CSR
from theory.problems.nonconvex import SaturatingQuadratic as SaturatingQuadratic
from theory.problems.nonconvex import saturating_quadratic as saturating_quadratic
from theory.problems.quadratic import Quadratic as Quadratic
from theory.problems.quadratic import quadratic as quadratic
from theory.problems.softmax import Softmax as Softmax
from theory.problems.softmax import softmax as softmax
from theory.problems.solve import solve as solve
