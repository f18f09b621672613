"""The parts of the documents that come from the program: outputs, pictures, refusals, functions, the map of files.

`fresh` gives a page with these parts made anew; `tests/test_readme.py` compares, and writes if asked to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import halfjoin as hj
from halfjoin.planner.rules import RULES
from halfjoin.sql.functions import TABLE, documentation

ROOT = Path(__file__).parents[1]
ROOMS = ("halfjoin", "sql", "catalog", "planner", "engine", "examples", "tests")
FENCED = r"```{}\n((?:(?!```).)*)```\n((?:(?!```).)*)```{}\n(?:(?!```).)*```"
REFUSED = "| written | refused because | instead |\n|---|---|---|\n"
FUNCTIONS = "| category | functions and operators |\n|---|---|\n"


def fresh(page: str) -> str:
    """The page as it should be."""
    if page == "docs/functions.md":
        return f"# Functions and operators\n\nPrinted by `halfjoin functions`.\n\n{documentation()}\n"
    text = (ROOT / page).read_text()
    if page == "README.md":
        names: dict[str, Any] = {}
        text = _paired(text, "python", "text", lambda code: _printed(code, names))
        text = _paired(text, "sql", "mermaid", _picture)
        text = _table(text, FUNCTIONS, _functions)
        schema = text.partition("<!-- schema: ")[2].partition(" -->")[0]
        return _table(text, REFUSED, lambda rows: "".join(_refusal(row, schema) for row in rows.splitlines()))
    if page == "ARCHITECTURE.md":
        rules = ", ".join(f"`{rule.__name__}`" for rule in RULES)
        return _between(_between(text, "rules", f" {rules} "), "map", f"\n{_map()}")
    return text


def _paired(text: str, first: str, second: str, make: Callable[[str], str]) -> str:
    """Each block in the second language is what `make` makes of the block in the first that stands before it."""

    def renew(found: re.Match[str]) -> str:
        return f"```{first}\n{found[1]}```\n{found[2]}```{second}\n{make(found[1]).strip()}\n```"

    return re.sub(FENCED.format(first, second), renew, text, flags=re.DOTALL)


def _printed(code: str, names: dict[str, Any]) -> str:
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), names)
    return printed.getvalue()


def _picture(sql: str) -> str:
    engine = hj.Engine()
    engine.execute(sql)
    return engine.explain(sql.rpartition("VIEW ")[2].split()[0], format="mermaid")


def _table(text: str, header: str, make: Callable[[str], str]) -> str:
    """The rows below a table's header are what `make` makes of those that stand there."""
    before, _, rest = text.partition(header)
    rows, end, after = rest.partition("\n\n")
    return before + header + make(rows).rstrip("\n") + end + after


def _functions(_: str) -> str:
    categories: dict[str, list[str]] = {}
    for entry in TABLE:
        if entry.category != "casts":
            categories.setdefault(entry.category, []).append(f"`{_cell(entry.name)}`")
    return "".join(f"| {category} | {', '.join(names)} |\n" for category, names in categories.items())


def _refusal(row: str, schema: str) -> str:
    """What is written, the reason for which it is refused, and the remedy."""
    written = row.split("`")[1]
    engine = hj.Engine()
    engine.execute(schema)
    try:
        engine.execute(written.replace("\\|", "|"))
    except hj.UnsupportedSQL as error:
        return f"| `{written}` | {_cell(error.reason)} | {_cell(error.remedy or '')} |\n"
    return f"| `{written}` | is not refused | |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _between(text: str, name: str, content: str) -> str:
    """The text with `content` between the comments that mark a part."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = text.partition(start)
    return before + start + content + end + rest.partition(end)[2]


def _map() -> str:
    """Every folder and file, with the first sentence of its docstring."""
    lines = []
    for room in ROOMS:
        files = sorted((ROOT / room).rglob("*.py"), key=lambda file: (file.parent, file.name))
        for folder in dict.fromkeys(file.parent for file in files):
            if any(part.is_symlink() for part in (folder, *folder.parents)):
                continue  # a link to another room
            lines.append(f"\n**{folder.relative_to(ROOT)}/** {_says(folder / '__init__.py')}\n")
            inside = [file for file in files if file.parent == folder and file.name != "__init__.py"]
            lines += [f"- `{file.name}` {_says(file)}" for file in inside]
    return "\n".join(lines).strip() + "\n"


def _says(file: Path) -> str:
    """The first paragraph of a module's docstring, on one line."""
    docstring = ast.get_docstring(ast.parse(file.read_text())) if file.exists() else None
    return " ".join((docstring or "").partition("\n\n")[0].split())
