"""`python -m halfjoin`: the command line."""

from halfjoin.cli import serve  # noqa: F401  adds its command
from halfjoin.cli.commands import app

if __name__ == "__main__":
    app()
