# SPDX-License-Identifier: BSD-2-Clause
"""A worker: sends what stands in the outbox, hears the clusters, and looks at jobs."""

import logging
import os
import socket
from collections.abc import Callable
from threading import Event, Thread

from django.db import Error, close_old_connections, connection
from django.utils import timezone

from moorage_cloud.clusters import AnotherCluster, ClusterSilent
from moorage_cloud.models import Backend, Heartbeat

from .doors import Connect
from .hearing import hear
from .removing import remove_next
from .sending import send_next
from .settling import look_next

_LOG = logging.getLogger(__name__)
_PAUSE = 0.05
"""Seconds between two looks at the database when there was something to do just now."""
_SENDS, _LOOKS = 0.4, 1.0
"""Seconds between two looks when there has been nothing for a while: for what somebody
waits for, and for what happens when something has gone wrong."""
_AGAIN = 1.0
"""Seconds before a cluster that does not answer is listened to again."""
_NOTED = 1.0
"""Seconds that a sender may take to note a job."""
_BEAT = 10.0
"""Seconds between two signs that it is there."""
_NEW = 2.0
"""Seconds between two looks for clusters that were added."""


class Worker:
    """The threads of a worker.

    Parameters
    ----------
    senders
        How many requests may be under way at once; one where there is SQLite.
    listen
        Seconds for which a cluster is listened to, before the worker looks whether it
        is to end.
    """

    def __init__(
        self, connect: Connect, senders: int = 1, listen: float = 10.0
    ) -> None:
        self._connect = connect
        self._seconds = listen
        self._senders = senders
        self._stop = Event()
        self._away = Event()
        self._threads: list[Thread] = []
        self._listens: dict[int, Thread] = {}

    def start(self) -> None:
        """Start all threads."""
        for _ in range(self._senders):
            self._spawn(lambda: self._over_and_over(send_next, _SENDS))
        self._spawn(lambda: self._over_and_over(look_next, _LOOKS))
        self._spawn(lambda: self._over_and_over(remove_next, _LOOKS))
        self._spawn(self._find_clusters)
        self._spawn(self._beat)

    def end(self) -> None:
        """Begin no more; for a signal."""
        self._stop.set()

    def stop(self) -> None:
        """Begin no more, and wait for the end of what was begun."""
        self._stop.set()
        for thread in (*self._threads, *self._listens.values()):
            thread.join()

    def wait(self) -> None:
        """Wait for the end."""
        self._stop.wait()

    def _spawn(self, what: Callable[[], None]) -> None:
        thread = Thread(target=what, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _over_and_over(self, turn: Callable[[Connect], bool], longest: float) -> None:
        pause = _PAUSE
        try:
            while not self._stop.is_set():
                if self._safely(lambda: turn(self._connect)):
                    pause = _PAUSE
                else:
                    self._stop.wait(pause)
                    pause = min(2 * pause, longest)
        finally:
            connection.close()

    def _beat(self) -> None:
        """Tell others that this worker is there."""
        try:
            while not self._stop.is_set():
                self._safely(_beat)
                self._stop.wait(_BEAT)
        finally:
            connection.close()

    def _find_clusters(self) -> None:
        try:
            while not self._stop.is_set():
                self._safely(self._listen_to_new)
                self._stop.wait(_NEW)
        finally:
            connection.close()

    def _listen_to_new(self) -> bool:
        for backend in Backend.objects.filter(offline=False):
            thread = self._listens.get(backend.pk)
            if thread is None or not thread.is_alive():
                thread = Thread(target=self._listen, args=(backend.pk,), daemon=True)
                self._listens[backend.pk] = thread
                thread.start()
        return True

    def _listen(self, number: int) -> None:
        """Listen to a cluster until it is off, or gone."""
        try:
            while not self._stop.is_set() and self._safely(lambda: self._hear(number)):
                pass
        finally:
            connection.close()

    def _hear(self, number: int) -> bool:
        backend = Backend.objects.filter(pk=number, offline=False).first()
        if backend is None:
            return False
        try:
            cluster = self._connect(backend)
            for heard in cluster.events(backend.event_number, self._seconds):
                hear(backend, heard, cluster, _NOTED)
        except ClusterSilent as silence:
            _LOG.warning("cluster %s does not tell what happens: %s", backend, silence)
            if isinstance(silence, AnotherCluster):
                Backend.objects.filter(pk=number).update(stranger=silence.uuid)
            self._stop.wait(_AGAIN)
        else:
            now = timezone.now()
            Backend.objects.filter(pk=number).update(heard=now, stranger="")
        return True

    def _safely(self, what: Callable[[], bool]) -> bool:
        """Do something; whatever goes wrong is told, and tried again after a while.

        A database that is away is waited for, and told of once, whichever thread sees
        it first. A thread that ended with an error would leave a worker that looks
        alive, and works no more.
        """
        try:
            close_old_connections()
            goes_on = what()
        except Error as error:
            if not self._away.is_set():
                self._away.set()
                _LOG.warning("the database does not answer: %s", error)
        except Exception:  # noqa: BLE001 - the log tells of it
            _LOG.exception("the worker met an error that it did not expect")
        else:
            if self._away.is_set():
                self._away.clear()
                _LOG.warning("the database answers again")
            return goes_on
        self._stop.wait(_AGAIN)
        return True


def _beat() -> bool:
    Heartbeat.beat(f"{socket.gethostname()}:{os.getpid()}")
    return True
