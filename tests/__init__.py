"""Tests of halfjoin: the laws, the oracles, the plans, bad input and the benchmarks."""
