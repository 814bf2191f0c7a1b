# SPDX-License-Identifier: BSD-2-Clause
"""How the tables came to be."""
