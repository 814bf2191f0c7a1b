# SPDX-License-Identifier: BSD-2-Clause
"""What Ganeti's own check complains of in a configuration, and what it overlooks."""

from moorage.consistency import Complaint, Complaints, complaints

__all__ = ["Complaint", "Complaints", "complaints"]
