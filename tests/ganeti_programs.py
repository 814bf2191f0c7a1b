# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's own ``gnt-*`` programs: run by Debian's Python, where its packages are.

It is told command lines, a line of JSON each: the words. It answers with a line:
``[status, what it printed]``. A process is forked for each, with Ganeti loaded already:
a program is not changed, only started sooner.
"""

import json
import os
import runpy
import sys
import tempfile


def main() -> None:
    """Run what is asked for, until nothing is."""
    import ganeti.cli  # noqa: PLC0415 - of another Python

    where = os.path.dirname(os.path.dirname(ganeti.cli.__file__))  # noqa: PTH120
    for line in sys.stdin:
        with tempfile.TemporaryFile() as out:
            child = os.fork()
            if not child:
                _become(where, json.loads(line), out.fileno())
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            out.seek(0)
            answer = [status, out.read().decode(errors="replace")]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _become(where: str, words: list[str], out: int) -> None:
    """Go on as a program with its words."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for own, other in enumerate((nothing, out, out)):
        os.dup2(other, own)
    sys.argv = words
    status = 1
    try:
        runpy.run_path(f"{where}/{words[0]}", run_name="__main__")
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:  # noqa: BLE001 - as Python itself ends a program
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
