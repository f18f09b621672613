"""The command line, and the printing of rows."""
