"""halfjoin's version. The module imports nothing, so that every other one can record the version on disk."""

VERSION = "0.1.0"
