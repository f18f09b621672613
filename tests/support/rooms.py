"""The rooms of the code and the imports between them, read from the source.

`python -m tests.support.rooms` prints each room, from top to bottom, with the first docstring line of each file.
`python -m tests.support.rooms --diagram` prints the imports between rooms, as in docs/architecture/rooms.md.

A room is a folder of the package. An import counts wherever it is: at the top of a file, inside a function or under
TYPE_CHECKING. The rooms' order follows from the imports. It exists only if no room imports itself through others.
Otherwise both commands report the circle and the imports that close it, and end with status 1.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

ROOT = next(folder for folder in Path(__file__).parents if (folder / "pyproject.toml").exists())
PACKAGES = ("halfjoin", "engine", "planner", "catalog", "sql")  # folders at the root; `engine` is `halfjoin.engine`
BESIDE = ("examples", "tests")  # folders that are not part of the package
FACE = "face"  # what users import or type: the files directly in `halfjoin/` and `engine/`, and the command line
BASE = "base"  # the files in `halfjoin/` that every room may use, so they are a room at the bottom
OF_BASE = ("halfjoin.errors", "halfjoin.nesting", "halfjoin.sqlstates", "halfjoin.version")
MOST_SHOWN = 5  # imports from one room to another, in the report of a circle
# Folders that are one room with others.
ONE = {"": FACE, "engine": FACE, "cli": FACE, "server": FACE, "shell": FACE, "console": FACE,
       "notebook": FACE, "catalog.system": "catalog", "planner.rules": "planner", "planner.reduces": "planner",
       "planner.cutting": "planner", "engine.feeds.files": "engine.feeds", "engine.feeds.kafka": "engine.feeds",
       "engine.feeds.postgres": "engine.feeds", "engine.sinks.kafka": "engine.sinks"}

Graph: TypeAlias = Mapping[str, Set[str]]


@dataclass(frozen=True)
class Import:
    """One import statement: the module that contains it, the module that it names, and its place in the source."""

    importer: str
    imported: str
    place: str


@dataclass(frozen=True)
class House:
    """The modules of the package by their full names, with their files."""

    files: Mapping[str, Path]
    root: Path

    @cached_property
    def _all(self) -> tuple[Import, ...]:
        return tuple(one for module in self.files for one in self._imports_of(module))

    @cached_property
    def imports(self) -> list[Import]:
        """The imports between modules of the package."""
        return [one for one in self._all if one.imported in self.files]

    def outside(self, libraries: Set[str], rooms: str) -> list[Import]:
        """The imports of some libraries in the rooms whose names begin with `rooms`."""
        found = (one for one in self._all if self.room(one.importer).startswith(rooms))
        return [one for one in found if one.imported.partition(".")[0] in libraries]

    @cached_property
    def rooms(self) -> Graph:
        """Each room with the rooms that it imports."""
        graph: dict[str, set[str]] = {self.room(module): set() for module in self.files}
        for one in self.imports:
            graph[self.room(one.importer)].add(self.room(one.imported))
        return {room: others - {room} for room, others in graph.items()}

    @cached_property
    def circles(self) -> list[set[str]]:
        """Sets of rooms that import each other, directly or through others."""
        return circles(self.rooms)

    def room(self, module: str) -> str:
        """The room of a module: `engine.batch` for `halfjoin.engine.batch.stage`, `sql` for `halfjoin.sql.expr`."""
        if module in OF_BASE:
            return BASE
        package = module if self.files[module].name == "__init__.py" else module.rpartition(".")[0]
        folder = ".".join(package.split(".")[1:3])
        return ONE.get(folder, folder)

    def file_circles(self) -> dict[str, list[set[str]]]:
        """For each room: its sets of modules that import each other."""
        graph: dict[str, set[str]] = {module: set() for module in self.files}
        for one in self.imports:
            graph[one.importer].add(one.imported)
        found: dict[str, list[set[str]]] = {}
        for circle in circles(graph):
            for room in {self.room(module) for module in circle}:
                found.setdefault(room, []).append(circle)
        return found

    def between(self, circle: Set[str]) -> dict[tuple[str, str], list[Import]]:
        """The imports between the rooms of a circle, for each pair of rooms; the pair with the fewest imports first."""
        pairs: dict[tuple[str, str], list[Import]] = {}
        for one in dict.fromkeys(self.imports):
            pair = self.room(one.importer), self.room(one.imported)
            if pair[0] != pair[1] and {*pair} <= circle:
                pairs.setdefault(pair, []).append(one)
        return dict(sorted(pairs.items(), key=lambda item: (len(item[1]), item[0])))

    def _imports_of(self, module: str) -> Iterator[Import]:
        path = self.files[module]
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for node in ast.walk(ast.parse(path.read_text())):
            names, line = list[str](), getattr(node, "lineno", 0)
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    above = package.split(".")[: len(package.split(".")) - node.level + 1]
                    base = ".".join([*above, *filter(None, [node.module])])
                names = [f"{base}.{alias.name}" for alias in node.names]
            for name in names:
                module_or_object = name if name in self.files else name.rpartition(".")[0] or name
                if module_or_object != module:
                    yield Import(module, module_or_object, f"{path.relative_to(self.root)}:{line}")


def house(root: Path = ROOT) -> House:
    """The package's modules on disk, without links to other folders."""
    files = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            if any(folder.is_symlink() for folder in path.parents):
                continue
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts if package == "halfjoin" else ("halfjoin", *parts))
            files[name.removesuffix(".__init__")] = path
    return House(files, root)


def circles(graph: Graph) -> list[set[str]]:
    """The sets of two or more nodes that reach each other."""
    reached = {node: _reached(graph, node) for node in graph}
    found: list[set[str]] = []
    for node in sorted(graph):
        circle = {other for other in reached[node] if node in reached[other]}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def order(graph: Graph) -> list[str]:
    """The nodes from top to bottom: each before those that it imports. Names break ties.

    Raises:
        ValueError: some nodes import each other.
    """
    importers = {node: {other for other in graph if node in graph[other]} for node in graph}
    found: list[str] = []
    while len(found) < len(graph):
        ready = [node for node in graph if node not in found and importers[node] <= {*found}]
        if not ready:
            raise ValueError(f"circles: {circles(graph)}")
        found.append(min(ready))
    return found


def direct(graph: Graph) -> dict[str, set[str]]:
    """The imports that do not follow from others: `a` to `c` follows if `a` imports `b` and `b` reaches `c`."""
    reached = {node: _reached(graph, node) for node in graph}
    return {
        node: {other for other in others if not any(other in reached[between] for between in others - {other})}
        for node, others in graph.items()
    }


def _reached(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for other in graph[waiting.pop()] - found:
            found.add(other)
            waiting.append(other)
    return found


def diagram(found: House) -> str:
    """A Mermaid flowchart of the direct imports between rooms, and a table of all of them, in Markdown."""
    rooms, arrows = order(found.rooms), direct(found.rooms)
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'  {_identifier(room)}["{room}"]' for room in rooms]
    lines += [f"  {_identifier(room)} --> {_identifier(other)}" for room in rooms
              for other in rooms if other in arrows[room]]  # fmt: skip
    lines += ["```", "", "| room | what it does | imports |", "|---|---|---|"]
    for room in rooms:
        others = ", ".join(f"`{other}`" for other in rooms if other in found.rooms[room])
        lines.append(f"| `{room}` | {_purpose(found, room)} | {others or 'nothing'} |")
    return "\n".join(lines)


def listing(found: House) -> str:
    """Every room from top to bottom, then the folders beside the package: each file with its first docstring line."""
    lines = []
    for room in order(found.rooms):
        lines.append(f"\n{room}: {_purpose(found, room)}")
        lines += [f"  {path.relative_to(found.root)}  {said(path)}" for module, path in found.files.items()
                  if found.room(module) == room and path.name != "__init__.py"]  # fmt: skip
    for folder in BESIDE:
        for path in sorted((found.root / folder).rglob("*.py"), key=lambda path: (path.parent, path.name)):
            if path.name == "__init__.py":
                lines.append(f"\n{path.parent.relative_to(found.root)}: {said(path)}")
            else:
                lines.append(f"  {path.relative_to(found.root)}  {said(path)}")
    return "\n".join(lines).strip()


def report(found: House) -> str:
    """Each circle of rooms and its imports. Empty if the rooms have an order.

    In most circles few imports go against many, so the few come first.
    """
    lines = []
    for circle in found.circles:
        lines.append(f"circle of rooms: {', '.join(sorted(circle))}")
        for (room, other), imports in found.between(circle).items():
            lines.append(f"  {room} imports {other}, {len(imports)} times")
            lines += [f"    {one.place} imports {one.imported}" for one in imports[:MOST_SHOWN]]
    return "\n".join(lines)


def said(path: Path) -> str:
    """The first paragraph of a file's docstring, on one line."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) if path.exists() else None
    return " ".join((docstring or "").partition("\n\n")[0].split())


def _purpose(found: House, room: str) -> str:
    """The first sentence about a room: its folder's docstring, or its first file's."""
    named = {FACE: "halfjoin", BASE: OF_BASE[0]}.get(room, f"halfjoin.{room}")
    return said(found.files[named]) if named in found.files else ""


def _identifier(room: str) -> str:
    return room.replace(".", "_")


if __name__ == "__main__":
    here = house()
    if wrong := report(here):
        print(wrong)
        sys.exit(1)
    print(diagram(here) if "--diagram" in sys.argv[1:] else listing(here))
