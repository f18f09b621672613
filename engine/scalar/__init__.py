"""The one evaluator of scalar expressions: Arrow kernels, and DuckDB where Arrow lacks one."""
