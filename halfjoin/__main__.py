"""`python -m halfjoin`: the command line."""

from halfjoin.cli.commands import app

if __name__ == "__main__":
    app()
