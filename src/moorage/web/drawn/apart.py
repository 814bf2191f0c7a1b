# SPDX-License-Identifier: BSD-2-Clause
"""Planning for many in a process of its own: meanwhile the door answers others.

A thread would do for a few instances, and does: a process begins with a second of its
own. With thousands of them the planner would take the interpreter from everybody else.
"""

import asyncio
import logging
import multiprocessing
import os
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Final, TypeVar

from moorage.errors import Failed, MoorageError, from_json

T = TypeVar("T")
Answers = Mapping[str, Any]
"""What the master told, by name, as the planner reads it."""

_LOG = logging.getLogger(__name__)
_MANY: Final = 1_000
"""Instances from which on there is a process."""
_LOWER: Final = 5
"""Its priority: who waits for a page does not wait for it."""
_SPAWN: Final = multiprocessing.get_context("spawn")


class Apart:
    """Where planning happens.

    Parameters
    ----------
    many
        Instances from which on there is a process.
    """

    def __init__(self, many: int = _MANY) -> None:
        self._many = many
        self._running: set[BaseProcess] = set()
        self._closed = False

    async def plan(self, work: Callable[..., T], answers: Answers, *more: object) -> T:
        """Return what a function of a module says of the cluster.

        Raises
        ------
        MoorageError
            What the function raises.
        Failed
            If the process breaks, or nothing is planned any more.
        """
        if self._closed:
            raise _closing()
        if len(answers["instances"]["data"]) < self._many:
            return await asyncio.to_thread(work, answers, *more)
        ours, theirs = _SPAWN.Pipe(duplex=False)
        shared = (theirs, work, answers, *more)
        return await asyncio.to_thread(self._planned, ours, theirs, shared)

    def _planned(
        self, ours: Connection, theirs: Connection, shared: tuple[Any, ...]
    ) -> Any:  # noqa: ANN401
        one = _SPAWN.Process(target=_work, args=shared, daemon=True)
        try:
            one.start()
            theirs.close()
            self._running.add(one)
            if self._closed:  # it was just beginning
                one.terminate()
            error, found = ours.recv()
        except (EOFError, OSError):
            broke = Failed("the planner broke: the door's log says why")
            raise (_closing() if self._closed else broke) from None
        finally:
            theirs.close()
            ours.close()
            if one.pid is not None:
                one.join()
            self._running.discard(one)
        if error is not None:
            raise from_json(error)
        return found

    def close(self) -> None:
        """Plan no more, what waits for its turn neither: who waits is told so."""
        self._closed = True
        for one in tuple(self._running):
            one.terminate()


def _closing() -> Failed:
    return Failed("the door is closing: nothing is planned any more")


def _work(
    told: Connection, work: Callable[..., Any], answers: Answers, *more: object
) -> None:
    os.nice(_LOWER)
    try:
        told.send((None, work(answers, *more)))
    except MoorageError as error:
        told.send((error.to_json(), None))
    except Exception:
        _LOG.exception("the planner broke")
        raise
