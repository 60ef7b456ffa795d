"""What studies share: configurations, problems, curves, reports."""
