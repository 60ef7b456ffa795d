"""Compressors: how a vector becomes few bits, and what the receiver restores from them."""

from ..core.rooms import lists_itself as _lists_itself
from .base import (
    Symbols,
    accumulate,
    capacity,
    compress_into,
    max_payload_bits,
    new_symbols,
    opening,
    opening_is_maximum,
    pack,
    parts,
    payload_bits,
    propose,
    quantize,
    restore,
    settle,
    shares_stream,
    state_size,
    summed,
    unpack,
    update_state,
)
from .bernoulli import Bernoulli, Ultra
from .closed_forms import check, delta, expected_nonzeros, expected_payload_bits, omega, reference
from .codec import compress, decode, encode
from .half_precision import HalfPrecision
from .identity import Identity
from .kernels.coo import fewest_values, pack_positions, positions_bits, unpack_positions
from .kernels.selection import largest, nonzeros
from .level_codes import RANS, Elias, Packed
from .lloyd_max import LloydMax
from .lossless import Lossless
from .low_rank import PowerSGD
from .multilevel import Multilevel
from .natural import Natural, NaturalDithering
from .numpy_function import FunctionCompressor, compressor
from .nuqsgd import NUQSGD, NUQSGDReleased
from .optimal_sparsifier import OptimalSparsifier
from .perm_k import PermK
from .qsgd import QSGD, qsgd_bits
from .random_block import RandomBlock
from .registry import compressor_examples, register, registered
from .sign import ScaledSign, Sign, majority_vote
from .sketch import BALANCED, FIXED, FRESH, CountSketch
from .sparsifiers import RandK, TopK
from .spectral import BestRank, QuantizedSpectrum, SpectralAtomo
from .ternary import ClippedTernGrad, Ternary, TernGrad
from .threshold import Threshold
from .two_scale_sign import TwoScaleSign
from .wrappers.bucketed import Bucketed
from .wrappers.composed import Composed
from .wrappers.entropy_coded import EntropyCoded, coded
from .wrappers.factor import Scaled, scaled
from .wrappers.layered import ByLayer, by_layer
from .wrappers.private import Private
from .wrappers.residual import Residual
from .wrappers.rotated import Rotated, eden
from .wrappers.skip_zero import SkipZero

_lists_itself(__name__)
