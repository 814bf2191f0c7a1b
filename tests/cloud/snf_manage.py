# SPDX-License-Identifier: BSD-2-Clause
"""Type the administrator's commands, in this process."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command


def types(line: str, *words: str) -> str:
    """Type a command that must succeed; return what it printed."""
    out = StringIO()
    call_command(*line.split(), *words, stdout=out)
    return out.getvalue()


def refused(line: str) -> str:
    """Type a command that must fail; return the sentence."""
    with pytest.raises(CommandError) as caught:
        types(line)
    return str(caught.value)
