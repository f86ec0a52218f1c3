"""`patchmill COMMAND`, also as `python -m service COMMAND`."""

import argparse
import sys
from importlib.metadata import version

from service.cli import health, serve, warm


def main(argv: list[str] | None = None) -> int:
    """Run one command and give its exit code."""
    parser = argparse.ArgumentParser("patchmill", description="Pictures in, patch tensors out.")
    parser.add_argument("--version", action="version", version=version("patchmill"))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (serve, warm, health):
        command.add(commands)
    args = parser.parse_args(argv)
    code: int = args.run(args)
    return code


if __name__ == "__main__":
    sys.exit(main())
