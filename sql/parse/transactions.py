"""BEGIN, COMMIT, ROLLBACK, SET TRANSACTION and SET CONSTRAINTS, and their modes."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from halfjoin.sql.parse.syntax import ConstraintModes, TransactionModes
from halfjoin.sql.parse.with_clause import WithParser
from halfjoin.sql.transactions import LEVELS, Begin, SetTransaction

SYNTAX = "write BEGIN ISOLATION LEVEL {READ COMMITTED | REPEATABLE READ | SERIALIZABLE} {READ WRITE | READ ONLY}"


class TransactionParser(WithParser):
    """The part of the parser that reads the modes of a transaction."""

    def _parse_transaction(self) -> exp.Expr:  # type: ignore[override]
        """BEGIN [WORK | TRANSACTION] [modes]."""
        self._match_texts(("TRANSACTION", "WORK"))
        return self._parse_modes("begin")

    def _parse_commit_or_rollback(self) -> exp.Commit | exp.Rollback:
        """What follows COMMIT, END, ROLLBACK or ABORT: AND [NO] CHAIN. After ROLLBACK it may be TO a savepoint."""
        word = self._prev.text.upper()
        self._match_texts(("TRANSACTION", "WORK"))
        if word == "ROLLBACK" and self._match_text_seq("TO"):
            self._match_text_seq("SAVEPOINT")
            return self.expression(exp.Rollback(savepoint=self._parse_id_var()))
        made = self.expression(exp.Rollback() if word in ("ROLLBACK", "ABORT") else exp.Commit())
        if self._match(TokenType.AND):
            made.meta["chain"] = not self._match_text_seq("NO")
            if not self._match_text_seq("CHAIN"):
                self.raise_error("AND needs CHAIN")
        return made

    def _parse_modes(self, this: str) -> exp.Expr:
        """ISOLATION LEVEL, READ ONLY or WRITE, DEFERRABLE, with or without commas; the last of each kind counts. No
        transaction waits for another, so DEFERRABLE says nothing."""
        made, first = TransactionModes(this=this), True
        while self._curr and self._curr.token_type is not TokenType.SEMICOLON:
            if not first:
                self._match(TokenType.COMMA)
            self._parse_mode(made)
            first = False
        if first and this == "set":
            remedy = "write SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"
            raise self._refused("SET TRANSACTION needs a mode", remedy).with_(code="42601")
        return self.expression(made)

    def _parse_constraint_modes(self) -> exp.Expr:
        """ALL, or the names of constraints; then IMMEDIATE or DEFERRED."""
        if not self._match_text_seq("ALL"):
            self._parse_csv(self._parse_table_parts)
        if not self._match_texts(("IMMEDIATE", "DEFERRED")):
            raise self._refused("syntax error in SET CONSTRAINTS", "write SET CONSTRAINTS ALL IMMEDIATE").with_(
                code="42601")
        return self.expression(ConstraintModes(this=self._prev.text.lower()))

    def _parse_mode(self, made: TransactionModes) -> None:
        if self._match_text_seq("ISOLATION", "LEVEL"):
            level = next((one for one in LEVELS if self._match_text_seq(*one.upper().split())), None)
            if level is None:
                raise self._refused("no level of isolation of that name", SYNTAX).with_(code="42601")
            made.set("level", level)
        elif self._match_text_seq("READ", "ONLY") or self._match_text_seq("READ", "WRITE"):
            made.set("access", self._prev.text.lower())
        elif not (self._match_text_seq("NOT", "DEFERRABLE") or self._match_text_seq("DEFERRABLE")):
            raise self._refused("no mode of a transaction of that name", SYNTAX).with_(code="42601")


def modes(node: TransactionModes) -> Begin | SetTransaction:
    """BEGIN, or SET TRANSACTION."""
    access = node.args.get("access")
    read_only = None if access is None else access == "only"
    made = Begin if node.this == "begin" else SetTransaction
    return made(node.args.get("level"), read_only)
