"""Nexmark's queries as maintained views, in events a second of one core (`python -m tests.benchmarks.nexmark`)."""
