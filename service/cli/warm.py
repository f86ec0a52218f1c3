"""`patchmill warm`: compile the kernels into their cache and prove them, with progress."""

import argparse
import sys

from kernels.dispatch import Choice
from kernels.warm import warm
from service.settings import SettingsFault, load


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("warm", help=__doc__.partition(": ")[2].strip())
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    try:
        settings = load({})
    except SettingsFault as fault:
        print(fault, file=sys.stderr)
        return 2
    report = warm(Choice(settings.kernel), _show)
    _show(f"{report.compiled} compiled, {report.from_cache} from cache, {report.seconds:.1f} s")
    return 0


def _show(line: str) -> None:
    print(line, flush=True)
