"""Builds the native kernels where a C compiler is, and goes on where not. All else is in pyproject.toml."""

import sysconfig
from pathlib import Path

from setuptools import Extension, setup

ROOM = Path("engine", "kernels")
KERNELS = Extension(
    "halfjoin.engine.kernels._native",
    sorted(map(str, ROOM.glob("*.c"))),
    depends=sorted(map(str, ROOM.glob("*.h"))),
    define_macros=[("Py_LIMITED_API", "0x030B0000")],  # of Python 3.11: one build serves all later versions
    extra_compile_args=["-O3", "-std=c11"],
    py_limited_api=True,
    optional=True,
)

if sysconfig.get_config_var("Py_GIL_DISABLED"):  # such a Python has no stable interface, and stays without the GIL
    setup()
else:
    setup(ext_modules=[KERNELS], options={"bdist_wheel": {"py_limited_api": "cp311"}})
