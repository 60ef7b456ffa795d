"""Problems f(x) = (1/n) sum_i f_i(x): their kernels, their constants, and their minimum with a certificate."""

from theory.problems.arguments import UnscaledDataWarning as UnscaledDataWarning
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
from theory.problems.gradient_check import WrongGradientWarning as WrongGradientWarning
from theory.problems.gradient_check import check_gradient as check_gradient
from theory.problems.layer_slices import initial_point as initial_point
from theory.problems.layer_slices import layer_shapes as layer_shapes
from theory.problems.layer_slices import layers as layers
from theory.problems.linear import Logistic as Logistic
from theory.problems.linear import Ridge as Ridge
from theory.problems.linear import logistic as logistic
from theory.problems.linear import ridge as ridge
from theory.problems.matrix import CSR as CSR
from theory.problems.multinomial import Softmax as Softmax
from theory.problems.multinomial import softmax as softmax
from theory.problems.network import TwoLayer as TwoLayer
from theory.problems.network import two_layer as two_layer
from theory.problems.newton import solve as solve
from theory.problems.noisy_gradients import Diversified as Diversified
from theory.problems.noisy_gradients import DropConnect as DropConnect
from theory.problems.noisy_gradients import Langevin as Langevin
from theory.problems.noisy_gradients import QuantizedGradients as QuantizedGradients
from theory.problems.noisy_gradients import disturb as disturb
from theory.problems.noisy_gradients import disturbed_moments as disturbed_moments
from theory.problems.noisy_gradients import diversified as diversified
from theory.problems.noisy_gradients import kept as kept
from theory.problems.nonconvex_regularizer import NonconvexLogistic as NonconvexLogistic
from theory.problems.nonconvex_regularizer import nonconvex_logistic as nonconvex_logistic
from theory.problems.numpy_function import FunctionProblem as FunctionProblem
from theory.problems.numpy_function import function as function
from theory.problems.pl_examples import SineQuadratic as SineQuadratic
from theory.problems.pl_examples import SineValley as SineValley
from theory.problems.pl_examples import sine_quadratic as sine_quadratic
from theory.problems.pl_examples import sine_valley as sine_valley
from theory.problems.polyak_lojasiewicz import PLConstant as PLConstant
from theory.problems.polyak_lojasiewicz import pl_constant as pl_constant
from theory.problems.proximal_point import Proximal as Proximal
from theory.problems.proximal_point import proximal as proximal
from theory.problems.quadratics import Quadratic as Quadratic
from theory.problems.quadratics import quadratic as quadratic
from theory.problems.saturating import SaturatingQuadratic as SaturatingQuadratic
from theory.problems.saturating import saturating_quadratic as saturating_quadratic

from ..core.rooms import lists_itself
from .margins import astype as astype
from .margins import linear_problem as linear_problem

lists_itself(__name__)
