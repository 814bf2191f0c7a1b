# SPDX-License-Identifier: BSD-2-Clause
"""Operations that look at storage and operating systems."""

from moorage.jobs import Operation

from .diagnose import StorageDiagnose
from .ext_diagnose import ExtStorageDiagnose
from .os_diagnose import OsDiagnose

OPERATIONS: tuple[type[Operation], ...] = (
    ExtStorageDiagnose,
    OsDiagnose,
    StorageDiagnose,
)
