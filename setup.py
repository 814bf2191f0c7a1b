# SPDX-License-Identifier: BSD-2-Clause
"""Compiles the planner's kernel; all else stands in pyproject.toml.

The kernel is Python that Cython can compile. Without a compiler it runs as it is: the
same answers, more slowly.
"""

from Cython.Build import cythonize
from setuptools import Extension, setup

PACKAGE = "moorage.htools.kernel"
KERNEL = [
    Extension(
        f"{PACKAGE}.{module}",
        [f"src/{PACKAGE.replace('.', '/')}/{module}.py"],
        # A fused multiply-add would change last digits, and so decisions.
        extra_compile_args=["-O3", "-ffp-contract=off"],
        optional=True,
    )
    for module in (
        "tables",
        "rows",
        "scores",
        "moves",
        "near",
        "candidates",
        "search",
        "leaving",
        "placing",
    )
]

setup(ext_modules=cythonize(KERNEL, build_dir="build", quiet=True))
