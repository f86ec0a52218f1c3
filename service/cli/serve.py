"""`patchmill serve`: run the service in the foreground."""

import argparse
import logging
import os
import sys
from importlib.util import find_spec

from service.keys import KeysFault
from service.plan import profiles
from service.plan.profiles import ProfileFault
from service.serve.listener import CannotListen, listen, listen_for_metrics
from service.settings import Settings, SettingsFault, load, misspelt, variable
from service.telemetry import logs, shared

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
        logs.configure(settings.log_level, settings.log_format, settings.access_log)
        for line in misspelt(os.environ):
            logging.getLogger("patchmill").warning("%s", line)
        profiles.load_all(settings.profiles_dir, settings.default_model)
        keys = settings.keys
        _check_extra(settings)
        listener = listen(settings)
        metrics_listener = listen_for_metrics(settings)
    except (SettingsFault, ProfileFault, KeysFault, CannotListen) as fault:
        print(f"patchmill cannot start:\n{fault}", file=sys.stderr)
        return EXIT_BAD_SETTINGS
    os.environ |= {variable(name): value for name, value in given.items()}  # for the workers
    with shared.folder():
        # Only now: what it imports decides at once whether its values are shared.
        from service.serve.supervisor import serve  # noqa: PLC0415

        ended_well = serve(settings, listener, metrics_listener, keys)
    return 0 if ended_well else EXIT_CANNOT_SERVE


def _check_extra(settings: Settings) -> None:
    # Asking for a package below one that is not there raises, so the upper one comes first.
    names = ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter")
    if settings.otel == "on" and not all(find_spec(name) for name in names):
        raise SettingsFault("PATCHMILL_OTEL='on': needs pip install 'patchmill[otel]'")
