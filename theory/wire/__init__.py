"""The wire format: bits, codes of integers, and the frame of a message."""

from .bits import bits_for
from .frame import (
    WireError,
    header_template,
    message_size,
    open_frame,
    overhead,
    register_code,
    register_wire,
    seal,
    verify,
)
from .integers import delta_length, gamma_length, omega_length
