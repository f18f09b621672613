"""The Spark runner: Spark jobs carry out the plans of views, with the same operators inside their tasks.

It uses only the public DataFrame API, so it works with Spark Connect sessions and with classic ones.
"""
