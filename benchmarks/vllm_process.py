"""vLLM's own loading and preprocessing of a Kimi picture, run by an interpreter that has vLLM.

A child of `vllm_peer`, which sends paths of files by line and gets back lines of JSON: wall and
CPU milliseconds, and the SHA-256 of the float32 patches. It imports nothing of ours.
"""

import hashlib
import json
import sys
import time
from pathlib import Path

from vllm.multimodal.media.image import ImageMediaIO
from vllm.transformers_utils.processors.kimi_k25_vision_fused import KimiK25FusedVisionProcessor

KIMI = {
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
"""The media_proc_cfg that Kimi-K2.5's checkpoint publishes."""


def main() -> None:
    answers = sys.stdout
    sys.stdout = sys.stderr  # libraries print where they like
    loader, processor = ImageMediaIO(), KimiK25FusedVisionProcessor(KIMI)
    for line in sys.stdin:
        data = Path(line.strip()).read_bytes()
        begun_s, begun_cpu_s = time.perf_counter(), time.process_time()
        image = loader.load_bytes(data).media
        made = processor.preprocess([{"type": "image", "image": image}])
        spent = {
            "ms": (time.perf_counter() - begun_s) * 1e3,
            "cpu_ms": (time.process_time() - begun_cpu_s) * 1e3,
        }
        digest = hashlib.sha256(made["pixel_values"].numpy().tobytes()).hexdigest()
        print(json.dumps({**spent, "sha256": digest}), file=answers, flush=True)


if __name__ == "__main__":
    main()
