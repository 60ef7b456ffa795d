"""Compressors: the encoding of a vector in few bits, and the vector that the receiver decodes."""

from ..core.arguments import lists_itself as _lists_itself
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
from .closed_forms import check, delta, expected_nonzeros, expected_payload_bits, omega, reference
from .codec import FunctionCompressor, compress, compressor, decode, encode
from .full_precision import HalfPrecision, Identity, Lossless
from .kernels.selection import fewest_values, largest, nonzeros, pack_positions, positions_bits, unpack_positions
from .privacy import Private
from .quantizers.geometric_levels import NUQSGD, Natural, NaturalDithering, NUQSGDReleased
from .quantizers.qsgd import QSGD, qsgd_bits
from .quantizers.scaled_levels import RANS, Elias, LloydMax, Packed
from .quantizers.sign import ScaledSign, Sign, TwoScaleSign, majority_vote
from .quantizers.ternary import ClippedTernGrad, Ternary, TernGrad
from .registry import compressor_examples, register, registered
from .sparsifiers.low_rank import PowerSGD
from .sparsifiers.optimal import OptimalSparsifier
from .sparsifiers.random_and_top_k import RandK, Threshold, TopK
from .sparsifiers.random_blocks import Bernoulli, PermK, RandomBlock, Ultra
from .sparsifiers.sketch import BALANCED, FIXED, FRESH, CountSketch
from .sparsifiers.spectral import BestRank, QuantizedSpectrum, SpectralAtomo
from .wrappers.bucketed import Bucketed
from .wrappers.composed import Composed, Residual
from .wrappers.entropy_coded import EntropyCoded, coded
from .wrappers.forward import Scaled, SkipZero, scaled
from .wrappers.layered import ByLayer, by_layer
from .wrappers.multilevel import Multilevel
from .wrappers.rotated import Rotated, eden

_lists_itself(__name__)
