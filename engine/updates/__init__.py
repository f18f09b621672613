"""Updates, times and hashes: rows with a time and a diff, added up."""
