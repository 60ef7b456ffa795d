"""Wrappers: compressors built from compressors; they forward what they do not define."""
