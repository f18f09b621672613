"""Ad-hoc queries: splits them into values that the engine computes and steps that DuckDB groups and sorts."""
