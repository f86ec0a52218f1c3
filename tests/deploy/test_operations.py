"""docs/operations.md says the numbers that the service computes, and starts it as compose does."""

import re

from service.about import peak_memory_bytes
from service.settings import Settings, load
from tests.deploy.composed import ROOT, SERVICES, limits, seconds

PAGE = (ROOT / "docs/operations.md").read_text("utf-8")
[RUN] = re.findall(r"^docker run (.+?[^\\])$", PAGE, re.MULTILINE | re.DOTALL)


def option(name: str) -> str:
    [value] = re.findall(rf"--{name} (\S+)", RUN)
    return str(value)


def peak_mib(settings: Settings) -> str:
    return f"{peak_memory_bytes(settings, settings.budgets) / 2**20:,.0f} MiB"


def test_the_memory_of_the_example_of_4_cpus_is_what_the_service_would_tell() -> None:
    assert option("cpus") == "4"
    assert peak_mib(load({"workers": 1, "threads": 4})) in PAGE


def test_the_memory_of_the_small_machine_is_what_the_service_would_tell() -> None:
    lines = re.findall(r"^(PATCHMILL_\w+)=(\d+)$", PAGE, re.MULTILINE)
    small = load({name.removeprefix("PATCHMILL_").lower(): value for name, value in lines})
    assert f"come to {peak_mib(small)}" in PAGE


def test_the_container_is_started_as_compose_would() -> None:
    told = limits("patchmill")
    assert option("memory") == told["memory"]
    assert option("cpus") == told["cpus"]
    assert option("pids-limit") == str(told["pids"])
    assert option("cap-drop") == "ALL"
    assert f"{option('security-opt')}:true" in SERVICES["patchmill"]["security_opt"]
    assert float(option("stop-timeout")) == seconds(SERVICES["patchmill"]["stop_grace_period"])
    assert "--read-only " in RUN
    [temporary] = SERVICES["patchmill"]["tmpfs"]
    assert temporary.startswith(option("tmpfs"))
    assert f"127.0.0.1:{option('publish').split(':', 1)[1]}" in SERVICES["patchmill"]["ports"]


def test_every_profile_is_told_with_its_ports() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| ([\d, ]+) \|$", PAGE, re.MULTILINE)
    assert {profile for profile, _ in rows} == {"gpu", "observability", "load"}
    for profile, ports in rows:
        published = {
            port.split(":")[1]
            for service in SERVICES.values()
            if profile in service.get("profiles", [])
            for port in service.get("ports", [])
        }
        assert published == set(ports.split(", "))
