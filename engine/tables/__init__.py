"""Table functions: one row in, several weighted rows out."""
