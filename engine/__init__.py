"""How it runs: updates, arrangements, operators, runners and the `Engine` that users hold."""
