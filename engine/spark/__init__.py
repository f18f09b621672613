"""The Spark runner: the plans of views carried out by Spark jobs, with the same operators inside their tasks.

Only the public DataFrame API is used, so a Spark Connect session serves as well as a classic one.
"""
