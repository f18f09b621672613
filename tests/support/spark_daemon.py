"""The process that Spark forks its Python workers from, once it has imported what their tasks import.

`spark.python.daemon.module` names it. A worker of Spark's own daemon imports halfjoin, pyarrow and pandas anew, and
reads the lists of Spark's zip files again: seconds for each worker, and Spark starts many.
"""

from __future__ import annotations

import sys
from zipimport import zipimporter

from pyspark import worker  # noqa: F401
from pyspark.daemon import manager

from halfjoin.engine.spark import runner  # noqa: F401

if __name__ == "__main__":
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
    manager()
