"""What the service tells of itself: probes, models, info, its API document and its page."""

import re

import pytest

from service.settings import Settings, variable
from tests.golden_data import IMAGES
from tests.service.running import Running, running


def test_the_probes_answer(service: Running) -> None:
    assert service.client.get("/health/live").json() == {"status": "live"}
    assert service.client.get("/health/ready").json() == {"status": "ready"}
    assert service.client.head("/health/live").status_code == 200
    assert service.client.head("/health/ready").status_code == 200


def test_models_lists_every_profile_with_aliases_and_source(service: Running) -> None:
    told = service.client.get("/models").json()
    assert told["default"] == "kimi-k2.5"
    assert [model["name"] for model in told["models"]] == [
        "kimi-k2.5",
        "kimi-k2.6",
        "kimi-k2.7",
        "kimi-k3",
        "nemotron-nano-vl-tiles",
        "nemotron-nano-vl",
    ]
    assert all(model["source"] for model in told["models"])
    assert all(model["aliases"] or "tiles" in model["name"] for model in told["models"])


def test_models_tells_which_dtypes_a_profile_has(service: Running) -> None:
    dtypes = {
        model["name"]: model["dtypes"] for model in service.client.get("/models").json()["models"]
    }
    assert dtypes["kimi-k2.5"] == ["uint8", "float16", "bfloat16", "float32"]
    assert dtypes["nemotron-nano-vl"] == ["float16", "bfloat16", "float32"]


def test_info_tells_every_setting_the_versions_and_the_kernel(service: Running) -> None:
    told = service.client.get("/info").json()
    assert set(told["settings"]) == {variable(name) for name in Settings.model_fields}
    assert told["kernel"]["name"] in ("simd", "portable")
    assert told["kernel"]["reason"]
    assert told["versions"]["pillow"] == "13.0.0"


def test_the_api_document_describes_every_route_and_body_form(service: Running) -> None:
    told = service.client.get("/openapi.json").json()
    assert set(told["paths"]) == {
        "/preprocess",
        "/plan",
        "/models",
        "/info",
        "/health/live",
        "/health/ready",
        "/metrics",
    }
    post = told["paths"]["/preprocess"]["post"]
    assert set(post["requestBody"]["content"]) == {
        "application/octet-stream",
        "image/*",
        "multipart/form-data",
        "application/msgpack",
        "application/json",
    }
    assert {parameter["name"] for parameter in post["parameters"]} == {
        "model",
        "hash",
        "model_id",
        "known_hashes",
        "dtype",
        "background",
        "format",
        "layout",
        "order",
        "max_model_len",
        "text_len",
        "min_num_patches",
        "max_num_patches",
    }
    assert set(post["responses"]) == {
        "200",
        "400",
        "401",
        "408",
        "413",
        "415",
        "422",
        "429",
        "500",
        "503",
        "504",
    }
    content = post["responses"]["200"]["content"]
    assert list(content) == ["application/msgpack", "application/json"]


def test_the_page_loads_nothing_from_another_host(service: Running) -> None:
    page = service.client.get("/docs")
    assert page.status_code == 200
    assets = re.findall(r"(?:src|href)=\"([^\"]+)\"", page.text)
    assert assets
    for asset in assets:
        assert asset.startswith("/docs-assets/")
        assert service.client.get(asset).status_code == 200


@pytest.mark.parametrize("path", ["/docs-assets/../settings.py", "/docs-assets/%2e%2e/settings.py"])
def test_the_page_s_folder_gives_no_other_file(service: Running, path: str) -> None:
    assert service.client.get(path).status_code == 404


def test_a_forced_numpy_kernel_says_so_and_gives_the_same_bytes(service: Running) -> None:
    picture = (IMAGES / "500x333.png").read_bytes()
    with running({"PATCHMILL_KERNEL": "numpy", "PATCHMILL_THREADS": "1"}) as slow:
        assert slow.client.get("/info").json()["kernel"]["name"] == "numpy"
        assert any("numpy engine" in line for line in slow.log)
        for dtype in ("uint8", "float16", "bfloat16", "float32"):
            both = [each.post(picture, params={"dtype": dtype}).content for each in (service, slow)]
            assert both[0][-100_000:] == both[1][-100_000:]


def test_a_service_behind_a_path_prefix_knows_it() -> None:
    with running({"PATCHMILL_ROOT_PATH": "/mill"}) as behind:
        assert '"/mill/openapi.json"' in behind.client.get("/docs").text.replace("'", '"')
        assert behind.client.get("/health/ready").status_code == 200
