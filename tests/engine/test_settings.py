"""Settings: an argument counts before the environment, that before the file, that before the default."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import halfjoin as hj
from halfjoin.cli.commands import app
from halfjoin.cli.settings import Settings, read_settings, strange
from halfjoin.server.access import access
from halfjoin.server.limits import Limits
from tests.support.serving import serving

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_place_counts_before_the_next(folder: Path) -> None:
    (folder / "halfjoin.toml").write_text('port = 1\nhost = "h1"\nmemory = "1GB"\nclock = "own"\n')
    found = read_settings({"port": 3, "host": None, "memory": ""}, {"HALFJOIN_PORT": "2", "HALFJOIN_HOST": "h2"})
    told = found.settings
    assert (told.port, told.host, told.memory, told.clock, told.http_port) == (3, "h2", "1GB", "own", 6876)
    names = ("port", "host", "memory", "clock", "http_port")
    assert [found.origins[name] for name in names] == ["argument", "HALFJOIN_HOST", "halfjoin.toml", "halfjoin.toml",
                                                       "default"]  # fmt: skip


def test_every_setting_can_come_from_each_place(folder: Path) -> None:
    values = {"warehouse": "w", "memory": "1GB", "retain": "5000", "clock": "wall", "host": "::1", "port": "1",
              "http_port": "-1", "password": "p", "password_file": "f", "tls_cert": "c", "tls_key": "k",
              "max_connections": "3", "idle_timeout": "1.5", "statement_timeout": "2"}  # fmt: skip
    assert set(values) == set(Settings.model_fields)
    environment = {f"HALFJOIN_{name.upper()}": value for name, value in values.items()}
    (folder / "other.toml").write_text("".join(f'{name} = "{value}"\n' for name, value in values.items()))
    from_file = read_settings({}, {"HALFJOIN_CONFIG": "other.toml"})
    assert read_settings({}, environment).settings == read_settings(values, {}).settings == from_file.settings
    assert from_file.settings.engine == {"memory": "1GB", "retain": 5000, "clock": "wall"}


def test_paths_of_a_file_are_relative_to_it(folder: Path) -> None:
    (folder / "etc").mkdir()
    (folder / "etc" / "h.toml").write_text('warehouse = "shop"\ntls_cert = "/abs/c.pem"\n')
    told = read_settings({}, {"HALFJOIN_CONFIG": "etc/h.toml"}).settings
    assert told.warehouse == str(Path("etc/shop")) and told.tls_cert == Path("/abs/c.pem")
    (folder / "etc" / "h.toml").write_text('warehouse = "s3://bucket/shop"\n')
    assert read_settings({}, {"HALFJOIN_CONFIG": "etc/h.toml"}).settings.warehouse == "s3://bucket/shop"


@pytest.mark.parametrize(("text", "said"), [
    ("prot = 1", r"halfjoin.toml: prot is not a setting; did you mean port\?"),
    ("port = ", "halfjoin.toml cannot be read"),
    ("port = 70000", r"the setting port \(halfjoin.toml\) is not valid"),
    ('clock = "moon"', r"the setting clock \(halfjoin.toml\) is not valid"),
])  # fmt: skip
def test_a_wrong_file_is_refused_with_its_place(folder: Path, text: str, said: str) -> None:
    (folder / "halfjoin.toml").write_text(text)
    with pytest.raises(hj.HalfjoinError, match=said):
        read_settings({}, {})


def test_a_file_that_is_named_must_be_there() -> None:
    with pytest.raises(hj.HalfjoinError, match=r"none.toml cannot be read"):
        read_settings({}, {"HALFJOIN_CONFIG": "none.toml"})


def test_misspelled_names_of_the_environment_are_found() -> None:
    assert strange({"HALFJOIN_PROT": "1", "HALFJOIN_PORT": "1", "HALFJOIN_ALL": "1", "PATH": ""}) == [
        ("HALFJOIN_PROT", "HALFJOIN_PORT")]


def test_doctor_tells_where_each_came_from_and_no_secret(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "halfjoin.toml").write_text('warehouse = "s3://key:hush@bucket/w"\nmax_connections = 7\n')
    monkeypatch.setenv("HALFJOIN_PASSWORD", "geheim")
    monkeypatch.setenv("HALFJOIN_WAREHOUSE", "")
    monkeypatch.setenv("HALFJOIN_MEMROY", "1GB")
    said = RUNNER.invoke(app, ["doctor", str(folder)]).stdout
    assert "setting max_connections: 7 (halfjoin.toml)" in said
    assert "setting password: (hidden) (HALFJOIN_PASSWORD)" in said
    assert "did you mean HALFJOIN_MEMORY?" in said and "(default)" in said
    assert ("warehouse", "s3://(hidden)@bucket/w", "halfjoin.toml") in read_settings().lines()
    assert "geheim" not in said and "hush" not in said and "geheim" not in repr(read_settings())


def test_commands_use_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFJOIN_WAREHOUSE", "shop")
    assert RUNNER.invoke(app, ["-c", "CREATE TABLE t (a integer)"]).exit_code == 0
    assert "t " in RUNNER.invoke(app, ["status"]).stdout
    assert RUNNER.invoke(app, ["compact"]).exit_code == 0
    monkeypatch.setenv("HALFJOIN_CLOCK", "own")
    assert "has its own times" in RUNNER.invoke(app, ["-c", "INSERT INTO t VALUES (1)"]).output
    monkeypatch.delenv("HALFJOIN_WAREHOUSE")
    assert "HALFJOIN_WAREHOUSE" in RUNNER.invoke(app, ["status"]).output
    monkeypatch.setenv("HALFJOIN_MEMORY", "much")
    assert "memory='much' is not a size" in RUNNER.invoke(app, ["-c", "SELECT 1"]).output
    monkeypatch.setenv("HALFJOIN_PORT", "x")
    refused = RUNNER.invoke(app, ["serve", "shop"])
    assert refused.exit_code == 1 and "the setting port (HALFJOIN_PORT) is not valid" in refused.output


def test_a_password_alone_lets_the_user_halfjoin_in() -> None:
    psycopg = pytest.importorskip("psycopg")
    with serving(access=access("127.0.0.1", None, None, None, "geheim")) as served:
        with served.psycopg(password="geheim") as connection:
            assert connection.execute("SELECT current_user").fetchone() == ("halfjoin",)
        with pytest.raises(psycopg.OperationalError):
            served.psycopg(password="other")
    with pytest.raises(hj.HalfjoinError, match="a password and a password file"):
        access("127.0.0.1", Path("f"), None, None, "geheim")


def test_show_says_what_the_server_was_told() -> None:
    pytest.importorskip("psycopg")
    limits = Limits(connections=5, idle=90, statement=1.5)
    with serving(limits=limits) as served, served.psycopg() as connection:
        def shown(name: str) -> str:
            return str(connection.execute(f"SHOW {name}").fetchone()[0])

        assert (shown("max_connections"), shown("idle_session_timeout"), shown("ssl")) == ("5", "90s", "off")
        assert shown("statement_timeout") == "1500ms"
        connection.execute("SET statement_timeout = '1s'")
        asked = connection.execute("SELECT current_setting('statement_timeout'), current_setting('max_connections')")
        assert asked.fetchone() == ("1s", "5")
        every = dict(connection.execute("SHOW SETTINGS").fetchall())
        assert (every["statement_timeout"], every["max_connections"]) == ("1s", "5")
        connection.execute("RESET ALL")
        assert shown("statement_timeout") == "1500ms"


_ASCII = r"""
import sys
from pathlib import Path
import halfjoin as hj
from halfjoin.cli.settings import read_settings
from halfjoin.server.access import read_passwords
assert sys.getfilesystemencoding() == "ascii"
print(ascii(read_settings({}, {}).settings.host), ascii([*read_passwords(Path("users"))]))
try:
    hj.Engine("w\u00e4")
except hj.StorageError as problem:
    print(ascii(str(problem)))
"""


def test_a_locale_changes_no_file(folder: Path) -> None:
    """Files of settings and passwords are UTF-8 where the locale has another encoding; names of files cannot be."""
    (folder / "halfjoin.toml").write_text('host = "hä"\n', "utf-8")
    (folder / "users").write_text("jürgen:secret\n", "utf-8")
    (folder / "users").chmod(0o600)
    root = Path(__file__).resolve().parents[2]
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", _ASCII], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "'h\\xe4' ['j\\xfcrgen']"
    assert "cannot be written in ascii" in done.stdout and "LC_ALL=C.UTF-8" in done.stdout
