# SPDX-License-Identifier: BSD-2-Clause
"""What several commands on disks take."""

from moorage.cli.command import Operand
from moorage.cli.fields import fill
from moorage.cli.option_syntax import key_values, text_params

DISK = Operand("DISK", field="disk")

PARAM = fill("-D/--param=params", repeats=True, convert=key_values, join=text_params)
