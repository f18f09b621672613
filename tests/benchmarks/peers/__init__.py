"""halfjoin beside others that keep the same views, in one table (`python -m tests.benchmarks.peers`)."""
