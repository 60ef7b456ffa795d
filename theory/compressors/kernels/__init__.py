"""Kernels that several compressors share: selection, index coding, norms, levels, small matrices."""
