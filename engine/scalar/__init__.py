"""The one evaluator of scalar expressions: `compile(expr).evaluate(columns, n)`, on Arrow arrays."""

from halfjoin.engine.scalar.arrow_types import arrow_type, sql_type
from halfjoin.engine.scalar.evaluate import Result, Scalar, compile
from halfjoin.engine.scalar.failures import Failures, merge
from halfjoin.engine.scalar.values import mask_of

__all__ = ["Failures", "Result", "Scalar", "arrow_type", "compile", "mask_of", "merge", "sql_type"]
