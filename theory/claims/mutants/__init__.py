"""Mutants: deliberately wrong compressors, rules and methods, which claims must refute."""
