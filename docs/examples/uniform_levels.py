"""A complete compressor: each coordinate is rounded at random to one of s + 1 levels between the least and the largest.

Suresh, Yu, Kumar, McMahan, "Distributed mean estimation with limited communication" (ICML 2017), sections 2 and 3.
"""

from typing import NamedTuple

from theory.compressors import register
from theory.core import require, setting
from theory.core.random import uniform
from theory.wire.bits import bits_for, read_array, read_floats, write_array, write_floats


@setting
class UniformLevels(NamedTuple):
    s: int = 1  # steps from the least coordinate to the largest

    def domain(self):
        require(1 <= self.s <= 2**15, "s", self.s, "an integer from 1 to 2**15")

    def capacity(c, d):
        return 0, 2, d, 0  # indices, floats, levels, work space

    def quantize(c, state, v, stream, symbols):
        symbols.value[0], symbols.value[1] = v.min(), v.max() / c.s - v.min() / c.s
        low, step = symbols.value[0], symbols.value[1]  # as they stand on the wire
        for j in range(v.size):
            symbols.level[j] = min(int((v[j] - low) / step + uniform(stream, j)), c.s) if step > 0.0 else 0
        symbols.count[1], symbols.count[2] = 2, v.size

    def accumulate(c, symbols, weight, out):
        for j in range(out.size):
            out[j] += weight * (symbols.value[0] + symbols.value[1] * symbols.level[j])

    def payload_bits(c, symbols, d):
        return 16 * symbols.value.itemsize + d * bits_for(c.s + 1)

    def pack(c, symbols, d, buffer, cursor):
        cursor = write_floats(buffer, cursor, symbols.value[:2])
        return write_array(buffer, cursor, symbols.level[:d], 0, bits_for(c.s + 1))

    def unpack(c, buffer, cursor, end, d, symbols):
        if cursor + 16 * symbols.value.itemsize + d * bits_for(c.s + 1) > end:
            return -1
        cursor = read_floats(buffer, cursor, symbols.value[:2])
        cursor = read_array(buffer, cursor, symbols.level[:d], 0, bits_for(c.s + 1))
        symbols.count[1], symbols.count[2] = 2, d
        return cursor if symbols.level[:d].max() <= c.s else -1

    def omega(c, d):  # Theorem 2 of the paper, for one worker
        return d / (2.0 * c.s**2)


register(UniformLevels, 200, lambda d: [UniformLevels(1), UniformLevels(15)])
