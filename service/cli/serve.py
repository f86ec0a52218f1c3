"""`patchmill serve`: run the service in the foreground."""

import argparse
import logging
import os
import sys

from service.plan import profiles
from service.plan.profiles import ProfileFault
from service.serve.listener import CannotListen, listen
from service.serve.supervisor import serve
from service.settings import Settings, SettingsFault, load, misspelt, variable
from service.telemetry import logs

EXIT_CANNOT_SERVE = 1
EXIT_BAD_SETTINGS = 2


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("serve", help=__doc__.partition(": ")[2].strip())
    for name in ("host", "port", "uds"):
        parser.add_argument(f"--{name}", help=Settings.model_fields[name].description)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    given = {name: getattr(args, name) for name in ("host", "port", "uds")}
    given = {name: value for name, value in given.items() if value is not None}
    try:
        settings = load(given)
        logs.configure(settings.log_level)
        for line in misspelt(os.environ):
            logging.getLogger("patchmill").warning("%s", line)
        profiles.load_all(settings.profiles_dir, settings.default_model)
        listener = listen(settings)
    except (SettingsFault, ProfileFault, CannotListen) as fault:
        print(f"patchmill cannot start:\n{fault}", file=sys.stderr)
        return EXIT_BAD_SETTINGS
    os.environ |= {variable(name): value for name, value in given.items()}  # for the workers
    return 0 if serve(settings, listener) else EXIT_CANNOT_SERVE
