"""Carries out a block of DO, step by step, with the statements of the connection that asks for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from halfjoin.errors import HalfjoinError
from halfjoin.server.blocks import Block, Choose, Run, Step
from halfjoin.server.portals import Result


class BlockSteps:
    """Blocks, whose statements `carry_out` runs one at a time.

    Args:
        carry_out: runs a statement and returns what it gives.
        fail: notes that the transaction has failed, so that it waits for ROLLBACK.
    """

    def __init__(self, carry_out: Callable[[str], Awaitable[Result]], fail: Callable[[], None]) -> None:
        self._carry_out, self._fail = carry_out, fail

    async def run(self, block: Block) -> None:
        """Carry out a block. What a handler catches is undone before its steps."""
        name = f"halfjoin do {id(block)}"
        if block.handlers:
            await self._carry_out(f'SAVEPOINT "{name}"')
        try:
            await self._steps(block.steps)
        except HalfjoinError as problem:
            if (steps := block.handler(problem)) is None:
                raise
            self._fail()
            await self._carry_out(f'ROLLBACK TO SAVEPOINT "{name}"')
            await self._steps(steps)
        if block.handlers:
            await self._carry_out(f'RELEASE SAVEPOINT "{name}"')

    async def _steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Run(text):
                    await self._carry_out(text)
                case Block():
                    await self.run(step)
                case Choose(cases):
                    for condition, chosen in cases:
                        if condition is None or await self._holds(condition):
                            await self._steps(chosen)
                            break

    async def _holds(self, condition: str) -> bool:
        rows = (await self._carry_out(f"SELECT ({condition}) IS TRUE")).rows
        return rows is not None and bool(rows.column(0)[0].as_py())
