# SPDX-License-Identifier: BSD-2-Clause
"""Operations that look at storage and operating systems."""

from moorage.jobs import Operation

from .certify import ExtStorageCertify
from .ext_diagnose import ExtStorageDiagnose
from .os_diagnose import OsDiagnose

OPERATIONS: tuple[type[Operation], ...] = (
    ExtStorageCertify,
    ExtStorageDiagnose,
    OsDiagnose,
)
