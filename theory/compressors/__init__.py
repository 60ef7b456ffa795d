"""Compressors: how a vector becomes few bits, and what the receiver restores from them."""

from .base import (
    Symbols,
    accumulate,
    capacity,
    check,
    compress_into,
    delta,
    expected_nonzeros,
    expected_payload_bits,
    max_payload_bits,
    new_symbols,
    omega,
    pack,
    parts,
    payload_bits,
    quantize,
    restore,
    state_size,
    unpack,
)
from .bucketed import Bucketed
from .doors import compress, compressor_examples, decode, encode, register, registered
from .identity import Identity
from .qsgd import QSGD, qsgd_bits
from .sparsifiers import RandK, TopK
from .vectors import largest, nonzeros

__all__ = [
    "QSGD",
    "Bucketed",
    "Identity",
    "RandK",
    "Symbols",
    "TopK",
    "accumulate",
    "capacity",
    "check",
    "compress",
    "compress_into",
    "compressor_examples",
    "decode",
    "delta",
    "encode",
    "expected_nonzeros",
    "expected_payload_bits",
    "largest",
    "max_payload_bits",
    "new_symbols",
    "nonzeros",
    "omega",
    "pack",
    "parts",
    "payload_bits",
    "qsgd_bits",
    "quantize",
    "register",
    "registered",
    "restore",
    "state_size",
    "unpack",
]
