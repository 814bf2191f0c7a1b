# SPDX-License-Identifier: BSD-2-Clause
"""Ask a cluster from a program: over HTTPS from anywhere, or over the master's socket.

::

    from moorage.client import Client, door

    with Client(door("https://cluster.example.org:5080", token=TOKEN)) as cluster:
        job = cluster.submit({"OP_ID": "OP_DISK_ADD", "name": "data1", "size": 1024})
        cluster.wait(job).outcome()

* door, Socket - where a cluster is
* Client       - blocks; threads and forked processes may share one
* Job          - a job as it stands, with :meth:`Job.outcome`
* Table        - what a query tells, with :meth:`Table.objects`
* Entry, Event - what happens in the cluster

What the cluster refuses, and what fails there, is raised as the `MoorageError` that
the master raised.
"""

from moorage.errors import MoorageError, NoMaster, Refused, Unreachable

from .asks import LONGEST_WAIT, TIMEOUT
from .blocking import Client
from .places import Door, Socket, door
from .told import ENDED, Change, Entry, Event, Field, Job, Table

__all__ = [
    "ENDED", "LONGEST_WAIT", "TIMEOUT", "Change", "Client", "Door", "Entry", "Event",
    "Field", "Job", "MoorageError", "NoMaster", "Refused", "Socket", "Table",
    "Unreachable", "door",
]  # fmt: skip
