"""Shared parts of studies: configurations, problems, curves, reports."""
