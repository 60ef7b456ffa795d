"""Wrappers: compressors built from other compressors; they forward the functions that they do not define."""
