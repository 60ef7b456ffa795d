"""Problems f(x) = (1/n) sum_i f_i(x): their kernels, their constants, and their minimum with a certificate."""

from ..core.arguments import lists_itself as _lists_itself
from .base import UnscaledDataWarning
from .constants import (
    StationaryPointWarning,
    batch_bound,
    gradient_diversity,
    gradient_variance,
    lipschitz,
    max_lipschitz,
    second_moment,
    strong_convexity,
)
from .evaluate import WrongGradientWarning, accuracy, batch_gradient, check_gradient, gradient, sample_gradient, value
from .linear import Logistic, Ridge, astype, linear_problem, logistic, ridge
from .matrix import CSR
from .multinomial import Softmax, softmax
from .network import TwoLayer, initial_point, layer_shapes, layers, two_layer
from .newton import solve
from .noisy_gradients import (
    Diversified,
    DropConnect,
    Langevin,
    QuantizedGradients,
    disturb,
    disturbed_moments,
    diversified,
    kept,
)
from .nonconvex import NonconvexLogistic, SaturatingQuadratic, nonconvex_logistic, saturating_quadratic
from .numpy_function import FunctionProblem, function
from .pl_examples import SineQuadratic, SineValley, sine_quadratic, sine_valley
from .polyak_lojasiewicz import PLConstant, pl_constant
from .quadratics import Proximal, Quadratic, proximal, quadratic

_lists_itself(__name__)
