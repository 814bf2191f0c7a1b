# SPDX-License-Identifier: BSD-2-Clause
"""Block Storage v3, as clients of Cinder know it."""
