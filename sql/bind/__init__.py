"""Names, types and relations: from a tree to a typed, bound view."""
