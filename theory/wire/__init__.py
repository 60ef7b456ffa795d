"""The wire format: bits, codes of integers, and the frame of a message."""

from .bits import bits_for
from .descriptor import WireError, register_code, register_wire
from .elias import delta_length, gamma_length, omega_length
from .frame import header_template, message_size, open_frame, overhead, seal, verify
