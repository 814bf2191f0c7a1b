# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's own client of RAPI: run by Debian's Python, where its packages are.

It is told calls, a line of JSON each: ``[method, arguments, keywords]``. It answers
with a line: ``[true, result]``, or ``[false, status, sentence]``.
"""

import json
import sys

PLACE = "usr/lib/python3/dist-packages"
PACKAGES = ("python3-ganeti-rapi", "python3-pycurl", "python3-simplejson")


def main() -> None:
    """Call what is asked for, until nothing is."""
    where, port, user, password = sys.argv[1:]
    sys.path.insert(0, f"{where}/{PLACE}")
    from ganeti.rapi import client  # noqa: PLC0415 - of another Python

    made = client.GanetiRapiClient(
        "127.0.0.1", port=int(port), username=user, password=password
    )
    for line in sys.stdin:
        method, args, more = json.loads(line)
        try:
            answer = [True, getattr(made, method)(*args, **more)]
        except client.GanetiApiError as error:
            answer = [False, error.code, str(error)]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
