"""Notebooks in a real kernel: the example runs; cells that run again or are interrupted leave a usable engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))
LONGEST = 120  # seconds that a cell may take before the test fails


class Kernel:
    """A kernel that runs cells."""

    def __init__(self, folder: Path) -> None:
        from jupyter_client.manager import start_new_kernel

        self.manager, self.client = start_new_kernel(kernel_name="python3", cwd=str(folder))

    def start(self, code: str) -> str:
        """Begin to run a cell; the id of what it sends."""
        return str(self.client.execute(code))

    def messages(self, id: str) -> Iterator[tuple[str, Any]]:
        """What a cell sends until it has ended."""
        while True:
            found = self.client.get_iopub_msg(timeout=LONGEST)
            if found["parent_header"].get("msg_id") != id:
                continue
            if found["msg_type"] == "status" and found["content"]["execution_state"] == "idle":
                return
            yield found["msg_type"], found["content"]

    def run(self, code: str) -> str:
        """Run a cell; its texts, and the name and text of its error."""
        said = ""
        for kind, content in self.messages(self.start(code)):
            if kind in ("execute_result", "display_data"):
                said += content["data"].get("text/html") or content["data"]["text/plain"]
            elif kind == "stream":
                said += content["text"]
            elif kind == "error":
                said += f"{content['ename']}: {content['evalue']}"
        return said

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    found = Kernel(tmp_path_factory.mktemp("notebook"))
    try:
        yield found
    finally:
        found.close()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_of_the_examples_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=LONGEST, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pages = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert len(pages) >= 5 and all("&lt;halfjoin" not in page for page in pages)


def test_cells_run_again_and_out_of_order(kernel: Kernel) -> None:
    cells = [cell.source for cell in nbformat.read(NOTEBOOKS[0], as_version=4).cells if cell.cell_type == "code"]
    opened, defined, live, changed, asked = cells[1], cells[2], cells[3], cells[4], cells[5]
    order = [cells[0], opened, defined, changed, live, live, defined, changed, asked, opened, asked, live, changed]
    for cell in order:
        said = kernel.run(cell)
        assert "Error" not in said and "Conflict" not in said, said
    assert '<td style="text-align:right">259.50</td>' in kernel.run(asked)


def test_what_cannot_be_run_twice_says_what_to_do(kernel: Kernel) -> None:
    kernel.run("import halfjoin as hj; first = hj.Engine('twice'); first.execute('CREATE TABLE t (a integer)')")
    said = kernel.run("second = hj.Engine('twice')")
    assert said.startswith("Conflict") and "this very process" in said and "close that engine first" in said
    said = kernel.run("first.execute('CREATE TABLE t (a integer)')")
    assert said.startswith("Conflict") and "IF NOT EXISTS" in said
    assert kernel.run("first.read('t').num_rows") == "0"
    assert kernel.run("first.close(); hj.Engine('twice').read('t').num_rows") == "0"


def test_an_interrupted_cell_leaves_the_engine_usable(kernel: Kernel) -> None:
    kernel.run("import halfjoin as hj; engine = hj.Engine('interrupted', clock='own')")
    kernel.run("engine.execute('CREATE TABLE t (a integer PRIMARY KEY);"
               " CREATE MATERIALIZED VIEW v AS SELECT a % 10 AS d, count(*) AS n FROM t GROUP BY 1'); done = 0")
    id = kernel.start("while True:\n"
                      "    engine.apply({'t': [{'a': engine.stats().upper}]}, time=engine.stats().upper)\n"
                      "    done += 1\n"
                      "    if done == 5: print('running', flush=True)")  # fmt: skip
    errors = []
    for kind, content in kernel.messages(id):
        if kind == "stream" and "running" in content["text"]:
            kernel.manager.interrupt_kernel()
        elif kind == "error":
            errors.append(content["ename"])
    assert errors == ["KeyboardInterrupt"]
    law = "SELECT a % 10 AS d, count(*) AS n FROM t GROUP BY 1"
    assert kernel.run(f"engine.read('v').sort_by('d') == engine.query('{law} ORDER BY 1')") == "True"
    assert kernel.run("engine.read('t').num_rows == engine.stats().upper and engine.stats().upper - done in (0, 1)"
                      ) == "True"  # fmt: skip
    assert kernel.run("engine.apply({'t': [{'a': -1}]}, time=10**6).upper") == "1000001"
    assert kernel.run("engine.close(); again = hj.Engine('interrupted'); again.read('v').num_rows > 0") == "True"
