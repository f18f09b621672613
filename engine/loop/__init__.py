"""The loop law: rounds of nodes that feed each other."""
