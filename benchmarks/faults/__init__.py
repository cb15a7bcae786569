"""Faults that are really caused to studies that really run, and what is seen; ``python -m benchmarks.faults``."""
