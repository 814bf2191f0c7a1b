# SPDX-License-Identifier: BSD-2-Clause
"""Pages for administrators, at ``/admin``: what there is, and the few verbs of theirs.

They are off unless the settings say at which addresses they are.
"""
