# SPDX-License-Identifier: BSD-2-Clause
"""A process from which those of the service come, which have all of it loaded already.

To start one from nothing takes seconds, and who kills them needs hundreds. It reads a
line of JSON for each: its words and the file of its output, and answers with its pid;
asked about a pid, it answers when that has ended.
"""

import json
import os
import sys
from typing import NoReturn

import django

django.setup()

from django.core.management import execute_from_command_line  # noqa: E402
from gunicorn.app import wsgiapp  # noqa: E402

import moorage_cloud.urls  # noqa: E402
import moorage_cloud.work  # noqa: E402, F401


def become(words: list[str], log: str) -> NoReturn:
    """Be a program until it ends."""
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, handle in enumerate((nothing, output, output)):
        os.dup2(handle, number)
    status = 99
    try:
        sys.argv = words
        if words[0] == "gunicorn":
            wsgiapp.run()
        else:
            execute_from_command_line(words)
        status = 0
    finally:
        os._exit(status)


def serve() -> None:
    """Do what is asked for, until nobody asks any more."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "pid" in asked:
            told = os.waitpid(asked["pid"], 0)[1]
        else:
            told = os.fork()
            if told == 0:
                become(asked["words"], asked["log"])
        print(told, flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    serve()
