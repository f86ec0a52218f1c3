"""Which CPU numba compiles for, where the kernels were compiled on another.

An image brings kernels for a level of x86-64 that nearly every server has, named
by NUMBA_CPU_NAME and NUMBA_CPU_FEATURES, and for the first level, which all
have. The environment comes in, and is changed to the latter where this CPU
lacks a feature of the former: machine code with instructions that a CPU
does not know ends the process. Call it before anything imports numba.
"""

from collections.abc import MutableMapping

NAME, FEATURES = "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"

EVERY_X86_64 = "x86-64"
"""LLVM's name of the first level; it needs no features beside."""


def settle(environ: MutableMapping[str, str]) -> None:
    """Leave in `environ` a target that this CPU can run.

    Raises ModuleNotFoundError where there is a target to look at but no LLVM.
    """
    wanted = [told[1:] for told in environ.get(FEATURES, "").split(",") if told.startswith("+")]
    if not wanted:
        return
    import llvmlite.binding as llvm  # type: ignore[import-untyped] # noqa: PLC0415 - see above

    host = llvm.get_host_cpu_features()
    if not all(host.get(feature, False) for feature in wanted):
        environ[NAME], environ[FEATURES] = EVERY_X86_64, ""
