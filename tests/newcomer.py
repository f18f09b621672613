"""What a newcomer does: the manual's first page, then psql. `python newcomer.py docs/start.md` in an empty folder."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

QUERY = "SELECT * FROM sales ORDER BY city"


def main(page: Path) -> None:
    """Run the page's code, serve the warehouse that it makes, and ask it something with psql, if that is there."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    exec(compile("\n".join(blocks), str(page), "exec"), {})
    psql = shutil.which("psql")
    if psql is None:
        print("psql is not installed")
        return
    command = [str(Path(sys.executable).parent / "halfjoin"), "serve", "shop", "--port", "0", "--http-port", "-1"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = re.search(r"-p (\d+)", server.stdout.readline())
        assert port is not None
        asked = [psql, "-XAt", "-h", "127.0.0.1", "-p", port[1], "-U", "halfjoin", "-c", QUERY]
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout
    finally:
        server.terminate()
        server.wait(60)
    assert answer == "Bern|1|7\nOslo|2|35\nRome|1|20\n", answer
    print(answer, end="")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
