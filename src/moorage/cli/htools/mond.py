# SPDX-License-Identifier: BSD-2-Clause
"""Asking the monitoring daemons how busy the nodes are."""

import sys
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from moorage.cli.declaration import Options
from moorage.cli.htools.files import read_text
from moorage.cli.htools.remote import fetch
from moorage.errors import BadInput, MoorageError
from moorage.htools.fleet import Fleet
from moorage.htools.formats import mond
from moorage.htools.formats.mond import Loads
from moorage.htools.utilization import Measured

TIMEOUT: Final = 15.0
"""Seconds for the answer of a node."""
AT_ONCE: Final = 32
"""Nodes asked at the same time."""


def measured(options: Options, fleet: Fleet) -> Measured | None:
    """Return the load that was measured, or None after a warning.

    Raises
    ------
    BadInput
        If the file of answers is off; with --exit-on-missing-mond-data also if
        some node did not answer.
    """
    xen = getattr(options, "mond_xen", False)
    collector = mond.INSTANCES if xen else mond.NODES
    path = getattr(options, "mond_data", None)
    if path is not None:
        found = mond.parse(read_text(path), path, collector)
    elif not options.ignore_dynu:
        found = _asked(fleet, collector)
    if options.ignore_dynu:
        return None
    known, missing = _joined(fleet, found, collector)
    if not missing:
        return known
    sys.stderr.write(missing + "\n")
    if getattr(options, "mond_exit", False):
        raise BadInput("Not all required data available")
    return None


def _joined(
    fleet: Fleet, found: dict[str, Loads], collector: str
) -> tuple[Measured, str]:
    """Return the load that is known, and what is missing."""
    loads: Loads = {}
    if any(node.name not in found for node in fleet.nodes):
        why = f"Didn't receive an answer by all MonDs, {collector}'s data will be "
        return Measured(), why + "ignored."
    for node in reversed(fleet.nodes):  # who is named first is believed
        loads.update(found[node.name])
    if collector == mond.NODES:
        return Measured(nodes=loads), ""
    names = sorted({inst.name for inst in fleet.instances} - set(loads))
    shown = ",".join(f'"{name}"' for name in names)
    why = f"No CPU information available for [{shown}]" if names else ""
    return Measured(insts=loads), why


def _asked(fleet: Fleet, collector: str) -> dict[str, Loads]:
    """Return what each node answers; say which do not."""
    names: SimpleQueue[str] = SimpleQueue()
    for node in fleet.nodes:
        names.put(node.name)
    found: dict[str, Loads] = {}
    threads = [
        Thread(target=_ask_some, args=(names, collector, found), daemon=True)
        for _ in range(min(AT_ONCE, len(fleet.nodes)))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _ask_some(
    names: "SimpleQueue[str]", collector: str, found: dict[str, Loads]
) -> None:
    while True:
        try:
            name = names.get_nowait()
        except Empty:
            return
        url = f"http://{name}:{mond.PORT}" + mond.PATH.format(collector)
        try:
            loads = mond.report(fetch(url, TIMEOUT), name, collector)
        except MoorageError:
            sys.stderr.write(
                f"Failed to contact node's {name} MonD for DC {collector}\n"
            )
            continue
        if loads is not None:
            found[name] = loads
