"""The shell: SQL and commands, typed at a terminal or read from a file."""
