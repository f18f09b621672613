"""SET, RESET and SHOW of a client's settings, with the forms of PostgreSQL's SET that write no `=`."""

from __future__ import annotations

import pyarrow as pa

from halfjoin.engine.statements.connection import Connection
from halfjoin.errors import UnsupportedSQL
from halfjoin.server.cursors import name_at
from halfjoin.server.portals import Result
from halfjoin.server.splitting import Piece
from halfjoin.server.transactions import Transactions, level_of, read_only_of
from halfjoin.server.variables import OF_TRANSACTIONS, Variables
from halfjoin.sql.expr import Column
from halfjoin.sql.types import TEXT

_TWO_WORDS = (("TIME", "ZONE"), ("SESSION", "AUTHORIZATION"))  # names of settings


class Settings:
    """The statements that read and write the settings of one connection."""

    def __init__(self, connection: Connection, variables: Variables, transactions: Transactions) -> None:
        self._connection, self._variables, self._transactions = connection, variables, transactions

    def set(self, piece: Piece) -> None:
        """SET [SESSION | LOCAL] name = | TO value, SET TIME ZONE, SET TRANSACTION, SET SESSION CHARACTERISTICS."""
        words = list(piece.words[1:])
        at, local = 1, words[:1] == ["LOCAL"]
        if words[:1] == ["TRANSACTION"]:
            self._transactions.take(words)
            return
        if words[:2] == ["SESSION", "CHARACTERISTICS"]:
            read_only, level = read_only_of(words), level_of(words)
            if read_only is not None:
                self._variables.set("default_transaction_read_only", "on" if read_only else "off")
            if level is not None:
                self._variables.set("default_transaction_isolation", level)
            return
        if words[:1] in (["LOCAL"], ["SESSION"]) and words[1:2] != ["AUTHORIZATION"]:
            at += 1
        words = list(piece.words[at:])
        if words[:2] == ["TIME", "ZONE"]:
            name, first = "timezone", at + 2
            if words[2:3] == ["INTERVAL"]:  # Sequelize: SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE
                return self._variables.set(name, piece.tokens[first + 1].text if words[3:] else "", local=local)
        elif words[:1] == ["NAMES"]:
            name, first = "client_encoding", at + 1
        elif words[:1] == ["ROLE"] and words[1:2] not in (["="], ["TO"]):
            name, first = "role", at + 1
        elif words[:2] == ["SESSION", "AUTHORIZATION"]:
            name, first = "session_authorization", at + 2
        else:
            sign = next((n for n, word in enumerate(words) if word in ("=", "TO")), None)
            if not sign:
                raise UnsupportedSQL("this form of SET is not supported", remedy="write SET name = value", code="42601")
            name, first = "".join(name_at(piece, at + n) for n in range(sign)), at + sign + 1
        if first >= len(piece.tokens):
            raise UnsupportedSQL("SET needs a value", remedy="write SET name = value", code="42601")
        local = local or name in OF_TRANSACTIONS  # it holds for one transaction, and outside that is this statement
        if local and self._connection.transaction == "idle":
            return
        values = [piece.tokens[n].text for n in range(first, len(piece.tokens)) if piece.words[n] != ","]
        default = len(values) == 1 and piece.words[first] in ("DEFAULT", "LOCAL") and values[0].upper() != "'DEFAULT'"
        value = (", " if name == "search_path" else "" if values[0] in "-+" else ", ").join(values)
        if name == "transaction_isolation":
            self._transactions.isolate(self._variables.get("default_transaction_isolation") if default else value)
        else:
            self._variables.set(name, None if default else value, local=local)

    def reset(self, piece: Piece) -> None:
        """RESET ALL, or of one setting."""
        if piece.words[1:2] == ("ALL",):
            self._variables.reset()
        else:
            two = piece.words[1:3] in _TWO_WORDS
            self._variables.set(" ".join(piece.words[1:]) if two else name_at(piece, 1), None)

    def show(self, piece: Piece) -> Result:
        """SHOW ALL, or of one setting."""
        said = " ".join(piece.words[1:]).lower()
        if said == "all":
            known = self._variables.all()
            rows = pa.table({"name": list(known), "setting": list(known.values()), "description": [""] * len(known)})
            columns = tuple(Column(name, TEXT) for name in rows.column_names)
            return Result("SHOW", rows, columns)
        name = {"time zone": "timezone", "transaction isolation level": "transaction_isolation",
                "session authorization": "session_authorization"}.get(said)  # fmt: skip
        name = name or "".join(name_at(piece, n) for n in range(1, len(piece.tokens)))
        if name == "time":
            raise UnsupportedSQL("SHOW TIME is not known to clients", remedy="write SHOW SETTINGS")
        value = self._variables.get(name)
        return Result("SHOW", pa.table({name: pa.array([value])}), (Column(name, TEXT),))
