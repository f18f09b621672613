"""The one evaluator of scalar expressions: `compile(expr).evaluate(columns, n)`, on Arrow arrays."""

from halfjoin.engine.scalar.arrow_types import arrow_type, sql_type
from halfjoin.engine.scalar.evaluate import Result, Scalar, compile, evaluate_filter
from halfjoin.engine.scalar.failures import Failures, merge

__all__ = ["Failures", "Result", "Scalar", "arrow_type", "compile", "evaluate_filter", "merge", "sql_type"]
