# SPDX-License-Identifier: BSD-2-Clause
"""Images, as far as volumes are made from them: looked at, and no more."""
