"""`patchmill serve`: run the service in the foreground."""

import argparse
import logging
import os
import sys

from service.app import create_app
from service.plan.profiles import ProfileFault
from service.serve.listener import CannotListen, listen
from service.serve.server import serve
from service.settings import Settings, SettingsFault, load, misspelt
from service.telemetry import logs

EXIT_BAD_SETTINGS = 2


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("serve", help=__doc__.partition(": ")[2].strip())
    for name in ("host", "port", "uds"):
        parser.add_argument(f"--{name}", help=Settings.model_fields[name].description)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    given = {name: getattr(args, name) for name in ("host", "port", "uds")}
    try:
        settings = load({name: value for name, value in given.items() if value is not None})
        logs.configure(settings.log_level)
        for line in misspelt(os.environ):
            logging.getLogger("patchmill").warning("%s", line)
        app = create_app(settings)
        listener = listen(settings)
    except (SettingsFault, ProfileFault, CannotListen) as fault:
        print(f"patchmill cannot start:\n{fault}", file=sys.stderr)
        return EXIT_BAD_SETTINGS
    serve(app, settings, listener)
    return 0
