"""docker-compose.yml holds to its schema, its neighbours, and what the service says of itself."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from service.about import peak_memory_bytes
from service.cli.health import TIMEOUT_S
from service.settings import Settings, load
from tests.deploy.composed import (
    ROOT,
    SERVICES,
    VARIABLE,
    compose,
    limits,
    listens,
    seconds,
    size_bytes,
    text,
)

PROFILES = {
    "patchmill": [],
    "vllm": ["gpu"],
    "frontend": ["gpu"],
    "prometheus": ["observability"],
    "grafana": ["observability"],
    "locust": ["load"],
}
OURS = ("patchmill", "frontend")
BUT_THE_ENGINE = [name for name in PROFILES if name != "vllm"]


def settings() -> Settings:
    """What patchmill reads from the environment that compose gives it."""
    told = SERVICES["patchmill"]["environment"]
    assert all(name.startswith("PATCHMILL_") for name in told)
    return load({name.removeprefix("PATCHMILL_").lower(): value for name, value in told.items()})


def test_it_holds_to_the_compose_schema() -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    told = [*check, "docker-compose.yml"]
    done = subprocess.run(told, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_service_alone_is_what_starts_without_a_profile() -> None:
    assert {name: each.get("profiles", []) for name, each in SERVICES.items()} == PROFILES
    assert "depends_on" not in SERVICES["patchmill"]


def test_every_variable_has_a_default_and_the_example_tells_it() -> None:
    used = {(found[1], found[2]) for found in VARIABLE.finditer(text())}
    lines = (ROOT / ".env.example").read_text("utf-8").splitlines()
    told = [tuple(line.split("=", 1)) for line in lines if line and not line.startswith("#")]
    assert used == set(told)
    assert len(told) == len(used)


def test_the_service_s_memory_fits_its_limit() -> None:
    made = settings()
    [temporary] = SERVICES["patchmill"]["tmpfs"]
    shared = size_bytes(re.findall(r"size=(\w+)", temporary)[0])
    limit = size_bytes(limits("patchmill")["memory"])
    needed = peak_memory_bytes(made, made.budgets) + shared
    assert needed <= limit
    assert limit - needed < 2**30  # no more than it takes


def test_the_service_has_as_many_threads_as_cpus() -> None:
    made = settings()
    assert made.workers > 0
    assert made.worker_count * made.thread_count == int(limits("patchmill")["cpus"])


def test_the_service_may_finish_what_it_has_begun() -> None:
    made = settings()
    grace = seconds(SERVICES["patchmill"]["stop_grace_period"])
    assert grace > made.drain_delay_s + made.grace_s


def test_the_frontend_may_finish_what_the_service_has_begun() -> None:
    own = seconds(SERVICES["frontend"]["stop_grace_period"])
    assert own >= seconds(SERVICES["patchmill"]["stop_grace_period"])


@pytest.mark.parametrize("name", BUT_THE_ENGINE)
def test_services_can_change_nothing_and_hold_no_more_than_they_may(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert [each.partition(":")[0] for each in service["tmpfs"]] == ["/tmp"]  # noqa: S108 - in the container
    assert set(limits(name)) == {"cpus", "memory", "pids"}
    assert not {"privileged", "cap_add", "network_mode", "pid"} & set(service)


def test_the_engine_has_the_gpus_and_the_open_endpoint() -> None:
    engine = SERVICES["vllm"]
    [device] = engine["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert engine["ipc"] == "host"
    assert engine["security_opt"] == ["no-new-privileges:true"]
    assert "--enable-scale-out" in engine["command"].split()


def test_the_engine_is_of_the_version_that_its_document_is_about() -> None:
    [told] = re.findall(r"holds for \*\*([\d.]+)\*\*", (ROOT / "docs/vllm.md").read_text("utf-8"))
    assert SERVICES["vllm"]["image"].startswith(f"vllm/vllm-openai:v{told}.")


def test_engine_and_frontend_agree_on_the_model_s_name() -> None:
    served = re.findall(r"--served-model-name (\S+)", SERVICES["vllm"]["command"])
    assert served == [SERVICES["frontend"]["environment"]["FRONTEND_MODEL"]]


def test_the_frontend_s_variables_are_its_settings() -> None:
    page = (ROOT / "examples/vllm_frontend/README.md").read_text("utf-8")
    known = set(re.findall(r"^\| `(FRONTEND_\w+)` \|", page, re.MULTILINE))
    assert set(SERVICES["frontend"]["environment"]) <= known


def test_the_service_and_the_frontend_speak_of_one_profile() -> None:
    profile = SERVICES["frontend"]["environment"]["FRONTEND_PROFILE"]
    assert profile == SERVICES["patchmill"]["environment"]["PATCHMILL_DEFAULT_MODEL"]


def test_ports_are_published_on_loopback_only_and_none_twice() -> None:
    published = [port for each in SERVICES.values() for port in each.get("ports", [])]
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in published)
    outside = [port.split(":")[1] for port in published]
    assert len(outside) == len(set(outside)) == 5


@pytest.mark.parametrize("name", [name for name in PROFILES if name != "vllm"])
def test_what_is_published_is_a_port_that_the_service_answers_on(name: str) -> None:
    [port] = SERVICES[name]["ports"]
    assert int(port.split(":")[2]) in listens(name)
    assert "edge" in SERVICES[name]["networks"]  # nothing is published from an internal network


def test_patches_cross_a_network_that_leads_nowhere_else() -> None:
    assert compose()["networks"]["tensors"] == {"internal": True}
    for name in ("patchmill", "vllm", "frontend"):
        assert "tensors" in SERVICES[name]["networks"]


@pytest.mark.parametrize("name", PROFILES)
def test_every_address_is_a_service_on_a_shared_network_and_its_port(name: str) -> None:
    service = SERVICES[name]
    told = "\n".join(
        [*map(str, service.get("environment", {}).values()), str(service.get("command"))]
    )
    for host, port in re.findall(r"http://([\w.-]+):(\d+)", told):
        assert int(port) in listens(host)
        assert set(service["networks"]) & set(SERVICES[host]["networks"])


@pytest.mark.parametrize("name", PROFILES)
def test_who_is_waited_for_says_when_it_is_well(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        assert how == {"condition": "service_healthy"}
        assert SERVICES[other]["healthcheck"]["test"][0] == "CMD"
        started_with = set(PROFILES[other]) <= set(PROFILES[name])
        assert started_with, f"{name} waits for {other}, which its profile does not start"


@pytest.mark.parametrize("name", [name for name in PROFILES if name != "locust"])
def test_a_health_check_asks_a_port_of_its_own_service(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    if name == "patchmill":
        assert check["test"] == ["CMD", "patchmill", "health"]
        assert seconds(check["timeout"]) > TIMEOUT_S
        return
    [port] = re.findall(r"http://127\.0\.0\.1:(\d+)/", " ".join(check["test"]))
    assert int(port) in listens(name)


def test_the_service_s_health_check_is_its_image_s() -> None:
    [told] = re.findall(r"^HEALTHCHECK (.+) CMD", (ROOT / "Dockerfile").read_text("utf-8"), re.M)
    options = dict(re.findall(r"--([\w-]+)=(\w+)", told))
    check = SERVICES["patchmill"]["healthcheck"]
    assert options == {key.replace("_", "-"): str(check[key]) for key in check if key != "test"}


@pytest.mark.parametrize("name", PROFILES)
def test_images_are_ours_or_pinned(name: str) -> None:
    image = SERVICES[name]["image"]
    if name in OURS:
        build = SERVICES[name]["build"]
        where = Path(build if isinstance(build, str) else build["context"])
        file = "Dockerfile" if isinstance(build, str) else build["dockerfile"]
        assert (ROOT / where / file).is_file()
    else:
        assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", image)


def test_mounted_configuration_exists_and_cannot_be_written() -> None:
    mounts = [mount for each in SERVICES.values() for mount in each.get("volumes", [])]
    configured = [mount for mount in mounts if isinstance(mount, str) and mount[0] == "."]
    for source, _, mode in (mount.split(":") for mount in configured):
        assert mode == "ro"
        assert (ROOT / source).is_dir()
    named = {mount.split(":")[0] for mount in mounts if isinstance(mount, str)} - {
        mount.split(":")[0] for mount in configured
    }
    assert named == set(compose()["volumes"])
