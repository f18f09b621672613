"""Updates, which are rows with a time and a diff: how to hash them and add them up."""
