# SPDX-License-Identifier: BSD-2-Clause
"""Operations on storage and operating systems as a whole."""

from .certify import ExtStorageCertify
from .diagnose import StorageDiagnose
from .ext_diagnose import ExtStorageDiagnose
from .os_diagnose import OsDiagnose
from .reconcile import StorageReconcile

OPERATIONS = (
    ExtStorageCertify,
    ExtStorageDiagnose,
    OsDiagnose,
    StorageDiagnose,
    StorageReconcile,
)
