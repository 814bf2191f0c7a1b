# SPDX-License-Identifier: BSD-2-Clause
"""The page in the browser: made by the server, on top of the client alone."""
