"""These programs print the figures in docs/benchmarks.md."""
