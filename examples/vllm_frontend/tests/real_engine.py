"""A real vLLM engine with a tiny Kimi model on the CPU, where an installed vLLM is named.

The model has Kimi-K2.5's architecture, two layers and no trained weight. It says
nothing sensible, but every pixel moves its log-probabilities, so it shows
whether two requests are the same.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
from patchmill_client.vllm import Family
from tokenizers import Tokenizer

from tests import checkpoint

PYTHON = os.environ.get("FRONTEND_TEST_VLLM_PYTHON")
PLUGIN = Path(__file__).parent / "engine_plugin"
START_TIMEOUT_S = 300
FLAGS = (
    *("--served-model-name", "m", "--load-format", "seeded", "--enable-scale-out"),
    *("--enforce-eager", "--dtype", "bfloat16", "--max-model-len", "8192", "--max-num-seqs", "4"),
    *("--skip-mm-profiling", "--seed", "0"),
)


def write_model(folder: Path) -> Path:
    """A checkpoint folder without weights."""
    checkpoint.write(folder, Family.KIMI)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    pad, bos, eos = (tokenizer.token_to_id(word) for word in ("<|media_pad|>", "[BOS]", "[EOS]"))
    ends = {"bos_token_id": bos, "eos_token_id": eos, "pad_token_id": eos}
    text = {
        "model_type": "deepseek_v3",
        "architectures": ["DeepseekV3ForCausalLM"],
        "vocab_size": 320,
        "hidden_size": 256,
        "intermediate_size": 512,
        "moe_intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "first_k_dense_replace": 1,
        "n_group": 1,
        "topk_group": 1,
        "kv_lora_rank": 512,  # with the rotary 64 the one head size that the CPU kernels have
        "q_lora_rank": 128,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 64,
        "v_head_dim": 64,
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "norm_topk_prob": True,
        "routed_scaling_factor": 1.0,
        "hidden_act": "silu",
        "max_position_embeddings": 32768,
        "rope_theta": 50000.0,
        "rms_norm_eps": 1e-5,
        "dtype": "bfloat16",
        **ends,
    }
    vision = {
        "patch_size": 14,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "hidden_size": 128,
        "intermediate_size": 256,
        "merge_kernel_size": [2, 2],
    }
    config = {
        "architectures": ["KimiK25ForConditionalGeneration"],
        "model_type": "kimi_k25",
        "use_unified_vision_chunk": True,
        "video_placeholder": "<|kimi_k25_video_placeholder|>",
        "image_token_id": pad,
        "media_placeholder_token_id": pad,
        "dtype": "bfloat16",
        "tie_word_embeddings": False,
        "text_config": text,
        "vision_config": vision,
        **ends,
    }
    processing = {
        "in_patch_limit": 16384,
        "patch_size": 14,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "merge_kernel_size": 2,
        "fixed_output_tokens": None,
        "patch_limit_on_one_side": 512,
        "in_patch_limit_each_frame": 4096,
        "in_patch_limit_video": None,
        "sample_fps": 2.0,
        "max_num_frames_each_video": None,
        "temporal_merge_kernel_size": 4,
        "timestamp_mode": "hh:mm:ss.fff",
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps({"media_proc_cfg": processing}))
    return folder


def write_plugin(folder: Path) -> Path:
    """A folder for PYTHONPATH in which vLLM finds the plugin as if it were installed."""
    shutil.copy(PLUGIN / "seeded_weights.py", folder)
    told = folder / "seeded_weights-0.1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: seeded-weights\nVersion: 0.1\n")
    entry = "[vllm.general_plugins]\nseeded_weights = seeded_weights:register\n"
    (told / "entry_points.txt").write_text(entry)
    return folder


@contextlib.contextmanager
def running(model: Path, plugin: Path, *flags: str) -> Iterator[str]:
    """The engine's address, until the block ends."""
    assert PYTHON
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    environ = {
        **os.environ,
        "PYTHONPATH": str(plugin),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "2",
    }
    where = ["--host", "127.0.0.1", "--port", str(port)]
    serve = [PYTHON, "-m", "vllm.entrypoints.cli.main", "serve", str(model)]
    process = subprocess.Popen(
        [*serve, *where, *FLAGS, *flags],
        env=environ,
        stdout=sys.stderr,  # pytest shows it where the test fails
        start_new_session=True,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, process)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def _wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end:
        assert process.poll() is None, "the engine did not start"
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{url}/health", trust_env=False).status_code == 200:
                return
        time.sleep(1)
    raise AssertionError("the engine takes too long to start")
