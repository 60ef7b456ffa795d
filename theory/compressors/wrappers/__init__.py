"""Compressors made of compressors: they forward what they do not define."""
