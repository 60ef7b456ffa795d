"""The proofs, by topic: a module of this folder is imported when the proof of one of its claims is asked for."""
