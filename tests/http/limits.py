"""Limits small enough to run into."""

from service.types import Limits

SMALL = Limits(
    max_body_bytes=10_000,
    max_items=3,
    max_pixels=10_000,
    max_request_pixels=20_000,
    max_side_px=1_000,
    max_scans=5,
    max_scan_pixels=20_000,
    max_answer_bytes=100_000,
)
