"""May the vector kernels be compiled here? LLVM aborts the process where they may not.

Nothing comes in; what is missing goes out, in words. Both must have the
features: the CPU, and the machine that numba compiles for, which
NUMBA_CPU_NAME and NUMBA_CPU_FEATURES may set to less, or to more.
"""

import llvmlite.binding as llvm  # type: ignore[import-untyped]
from numba.core.registry import cpu_target

NEEDED = ("avx2", "fma", "f16c")


def missing() -> str:
    """A sentence that says what the vector kernels lack here; empty when nothing."""
    triple, _, flags = cpu_target.target_context.codegen().magic_tuple()
    if not triple.startswith("x86_64"):
        return f"the vector kernels are for x86-64, this is {triple.split('-')[0]}"
    host = llvm.get_host_cpu_features()
    if lacking := [name for name in NEEDED if not host.get(name, False)]:
        return f"the CPU lacks {', '.join(lacking)}"
    told = flags.split(",")
    if lacking := [name for name in NEEDED if f"+{name}" not in told]:
        return f"NUMBA_CPU_FEATURES lacks {', '.join('+' + name for name in lacking)}"
    return ""
