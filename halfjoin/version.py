"""halfjoin's version. The module imports nothing, so that every other one can record the version on disk."""

VERSION = "0.1.0"

# Greater in each version that gives some expression another value or type; sql/bind/meaning.py says which.
MEANING = 16
