"""`patchmill warm`: compile the kernels into their cache and prove them, with progress.

With `--cached ENGINE` it proves that somebody did: exit 1 unless that engine serves and
nothing had to be compiled. A build of an image runs it a second time, with this.
"""

import argparse
import sys

from kernels.dispatch import Choice
from kernels.warm import warm
from service.settings import SettingsFault, load


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("warm", help=__doc__.partition(": ")[2].partition("\n")[0])
    parser.add_argument(
        "--cached",
        metavar="ENGINE",
        choices=("simd", "portable"),
        help="exit 1 unless this engine (simd, portable) serves, all of it from the cache",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        settings = load({})
    except SettingsFault as fault:
        print(fault, file=sys.stderr)
        return 2
    report = warm(Choice(settings.kernel), _show)
    _show(f"{report.compiled} compiled, {report.from_cache} from cache, {report.seconds:.1f} s")
    if args.cached and (report.engine.name != args.cached or report.compiled):
        print(f"not what was asked for: {args.cached}, from the cache", file=sys.stderr)
        return 1
    return 0


def _show(line: str) -> None:
    print(line, flush=True)
