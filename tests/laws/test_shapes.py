"""The law of shapes: a query that is asked with other values answers, and fails, as one that is made anew."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

import halfjoin as hj
from halfjoin.engine.statements import remembered
from halfjoin.sql.expr import Literal
from halfjoin.sql.parse.prepared import prepared
from halfjoin.sql.types import BIGINT, BOOLEAN, INTEGER, NUMERIC_TYPE, SMALLINT, TEXT, TIMESTAMP, SqlType
from halfjoin.sql.unseen import Looked, Unseen
from tests.laws.test_remembered_queries import Forgetful
from tests.oracle.rows import tuples
