"""The user's own reduces: what a function makes of groups at their moments.

State law. A changed group is looked up whole, and its function called for what it is now. What the group was is the
rows that are stored: they are what goes, whatever the function would say today. It is called for what a group was only
if nothing is stored, since then it may have failed, and the error must go.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.tables import Registry, reduce_function
from halfjoin.engine.reduce.calling import Given, called
from halfjoin.engine.reduce.contents import Contents
from halfjoin.engine.reduce.lookup import GROUP, group_of
from halfjoin.engine.reduce.user import rows_in_order
from halfjoin.engine.scalar.failures import Failures
from halfjoin.engine.updates.updates import DIFF, Updates, concat, indices_of, where_true
from halfjoin.planner.group_functions import Own


def answers(spec: Own, contents: Contents, was: Updates | None, registry: Registry) -> Updates:
    """The rows of the output at each moment, with the moment in place of the time.

    `was`: the rows of the output that are stored. Groups for which the function fails have no rows; they become errors.

    Raises:
        HalfjoinError: the function is not registered.
    """
    user, moments, groups = reduce_function(spec.function, registry), contents.moments, contents.groups
    due, kept = np.diff(groups.starts) > 0, list[Updates]()
    if was is not None and len(was):
        moment = where_true(moments.was)[group_of(was)]
        due[moment] = False
        kept.append(Updates({name: array for name, array in was.columns.items() if name != GROUP}, moment, was.diff))
    rows, count, starts = rows_in_order(dict(spec.takes), groups, spec.order)
    counted = pa.RecordBatch.from_arrays([*rows.columns, pa.array(count)], names=[*rows.schema.names, DIFF])
    made, failed = called(user, Given(counted, starts), where_true(due))
    if failed:
        failures = Failures.of(np.array(sorted(failed)), "")
        failures.messages[:] = [failed[one] for one in failures.rows.tolist()]
        contents.report(failures.rows, failures.messages, {column.name: name for name, column in spec.takes})
    keys = {name: array.take(indices_of(moments.group[made.time])) for name, array in moments.keys.items()}
    own = {column.name: made.columns[name] for name, column in spec.outputs}
    return concat([*kept, Updates({**keys, **own}, made.time, made.diff)])
