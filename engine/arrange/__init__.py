"""Collections, and the indexes on them that all paths share."""
