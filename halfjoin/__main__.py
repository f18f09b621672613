"""`python -m halfjoin`: the command line."""

from halfjoin.engine.cli import app

if __name__ == "__main__":
    app()
