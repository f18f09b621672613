"""The parts of the documents that the program writes: outputs, pictures, refusals, functions, rules, rooms.

`fresh` gives a page with the current parts. `tests/test_readme.py` compares, and writes the page if asked to.

A page's code runs from top to bottom, in a folder of its own:

- `python` blocks share their names; so do `spark` blocks, which also have a `session`;
- `sql` blocks run in one engine;
- in `sh` blocks the lines that begin with `halfjoin` run.

A `text` block shows what the code block before it prints. A `mermaid` block after `sql` is the picture of its view.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer.testing import CliRunner

import halfjoin as hj
from halfjoin.__main__ import app
from halfjoin.engine.spark import runners
from halfjoin.planner.rules import RULES
from halfjoin.sql.functions import documentation
from halfjoin.sql.functions.docs import documented
from tests.support.rooms import diagram, house

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FINGERPRINT = re.compile(r"(?<=#)[0-9a-f]{16}")
NEAR = runners.NEAR  # before a test's Spark session changes it
SHOWN = ("text", "mermaid")  # blocks that hold output
REFUSED = "| written | refused because | instead |\n|---|---|---|\n"
FUNCTIONS = "| category | functions and operators |\n|---|---|\n"


def pages() -> list[str]:
    """All pages in Markdown, by their paths from the root."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(str(page.relative_to(ROOT)) for page in found)


def fresh(page: str, session: Any = None) -> str:
    """The page with current parts. Its code runs in the current folder, `spark` blocks in a Spark `session`."""
    if page == "docs/functions.md":
        return functions_page()
    text = _with_output((ROOT / page).read_text(), session)
    text = _table(text, FUNCTIONS, _functions)
    text = _table(text, REFUSED, lambda rows: _refusals(rows, text))
    text = _between(text, "rules", lambda: f" {', '.join(f'`{rule.__name__}`' for rule in RULES)} ")
    return _between(text, "rooms", lambda: f"\n{diagram(house())}\n")


def functions_page() -> str:
    """The page that lists the functions."""
    return f"""# Functions and operators

`halfjoin functions` prints this table. *takes* lists the types of the arguments and, after the arrow, of the result;
`...` means that the last argument may be repeated. *evaluator* says which library computes the function; `arrow` is
Arrow with numpy, or Python once for each distinct value.
[sql.md](sql.md) describes the rest of the SQL.

{documentation()}
"""


@dataclass(slots=True)
class _Page:
    """The state that the blocks of one page share."""

    names: dict[str, Any]
    engine: hj.Engine = field(default_factory=hj.Engine)

    def printed(self, language: str, code: str, shown_as: str) -> str | None:
        """The output of a block. None if nothing in it runs."""
        if language == "python" or (language == "spark" and self.names["session"] is not None):
            return self._output(lambda: exec(compile(code, "page", "exec"), self.names))
        if language == "sql":
            rows = self.engine.execute(code)
            if shown_as == "mermaid":
                return self.engine.explain(code.rpartition("VIEW ")[2].split()[0], format="mermaid")
            return None if rows is None or shown_as != "text" else self._output(lambda: hj.show(rows))
        lines = [line for line in code.splitlines() if line.startswith("halfjoin ")] if language == "sh" else []
        return "".join(map(_typed, lines)) if lines else None

    @staticmethod
    def _output(run: Callable[[], object]) -> str:
        printed = StringIO()
        with redirect_stdout(printed):
            run()
        return printed.getvalue()


def _typed(line: str) -> str:
    """A command's standard output."""
    done = CliRunner().invoke(app, shlex.split(line)[1:])
    assert done.exit_code == 0, f"{line}: {done.output}"
    return done.stdout


def _with_output(text: str, session: Any) -> str:
    """The text, with the current output in each block of output. Without a session, as if Spark had never started."""
    with patch.object(runners, "NEAR", NEAR if session is None else runners.NEAR):
        return _run(text, session)


def _run(text: str, session: Any) -> str:
    page, parts, end = _Page({"session": session}), [], 0
    found = list(BLOCK.finditer(text))
    printed: str | None = None
    for number, block in enumerate(found):
        language, code = block[1], block[2]
        if language in SHOWN:
            if printed is not None:
                lines = [line.rstrip() + "\n" for line in _numbered(printed).strip("\n").splitlines()]
                parts += [text[end : block.start(2)], *lines]
                end = block.end(2)
            printed = None
            continue
        assert not printed, f"the page does not show what its code prints: {printed}"
        shown_as = found[number + 1][1] if number + 1 < len(found) else ""
        printed = page.printed(language, code, shown_as)
    assert not printed, f"the page does not show what its code prints: {printed}"
    page.engine.close()
    return "".join([*parts, text[end:]])


def _numbered(printed: str) -> str:
    """The output with numbers for the fingerprints of nodes, which cover the random ids of tables."""
    numbers: dict[str, str] = {}
    return FINGERPRINT.sub(lambda found: numbers.setdefault(found[0], f"{len(numbers) + 1:016x}"), printed)


def _table(text: str, header: str, make: Callable[[str], str]) -> str:
    """Replace the rows below a table's header, if the text has it, by what `make` makes of them."""
    if header not in text:
        return text
    before, _, rest = text.partition(header)
    rows, end, after = rest.partition("\n\n")
    return before + header + make(rows).rstrip("\n") + end + after


def _functions(_: str) -> str:
    categories: dict[str, list[str]] = {}
    for entry in documented():
        categories.setdefault(entry.category, []).append(f"`{_cell(entry.name)}`")
    return "".join(f"| {category} | {', '.join(names)} |\n" for category, names in categories.items())


def _refusals(rows: str, text: str) -> str:
    """For each statement in the table, the reason for its refusal, and the remedy. The text above has the schema."""
    schema = next(block[2] for block in BLOCK.finditer(text) if block[1] == "sql")
    return "".join(_refusal(row.split("`")[1], schema) for row in rows.splitlines())


def _refusal(written: str, schema: str) -> str:
    engine = hj.Engine()
    engine.execute(schema)
    try:
        engine.execute(written.replace("\\|", "|"))
    except hj.UnsupportedSQL as error:
        return f"| `{written}` | {_cell(error.reason)} | {_cell(error.remedy or '')} |\n"
    return f"| `{written}` | is not refused | |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _between(text: str, name: str, content: Callable[[], str]) -> str:
    """Put `content` between the comments that mark a part, if the text has them."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    if start not in text:
        return text
    before, _, rest = text.partition(start)
    return before + start + content() + end + rest.partition(end)[2]
