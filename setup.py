# SPDX-License-Identifier: BSD-2-Clause
"""Compiles the planner's kernel and lists the examples; else see pyproject.toml.

The kernel is Python that Cython can compile. Without a compiler it runs as it is: the
same answers, more slowly.
"""

import runpy
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

PACKAGE = "moorage.htools.kernel"
FOLDER = Path("src", *PACKAGE.split("."))
KERNEL = [
    Extension(
        f"{PACKAGE}.{module}",
        [str(FOLDER / f"{module}.py")],
        # No debug symbols: they are most of the time and of the size. A fused
        # multiply-add would change last digits, and so decisions.
        extra_compile_args=["-O3", "-g0", "-ffp-contract=off"],
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


def declare_columns() -> None:
    """Tell the compiler the constants of `columns.py`, which Python reads itself."""
    found = runpy.run_path(str(FOLDER / "columns.py")).items()
    numbers = {name: value for name, value in found if type(value) is int}
    parts = {name: value for name, value in found if type(value) is float}
    lines = [
        "# Written by setup.py: what columns.py says, for the compiler.",
        "cdef enum:",
        *(f"    {name} = {value}" for name, value in numbers.items()),
        "",
        "cdef extern from *:",
        '    """',
        *(f"    #define MOORAGE_{name} {value!r}" for name, value in parts.items()),
        '    """',
        *(f'    const double {name} "MOORAGE_{name}"' for name in parts),
        "",
    ]
    file, text = FOLDER / "columns.pxd", "\n".join(lines)
    if not file.exists() or file.read_text() != text:
        file.write_text(text)


def examples() -> list[tuple[str, list[str]]]:
    """Return the providers and OS definitions, by the directory they go to."""
    folders = (found for found in Path("share").rglob("*") if found.is_dir())
    return [
        (f"share/moorage/{folder.relative_to('share')}", files)
        for folder in sorted(folders)
        if (files := sorted(str(one) for one in folder.iterdir() if one.is_file()))
    ]


declare_columns()
setup(
    ext_modules=cythonize(KERNEL, build_dir="build", quiet=True), data_files=examples()
)
