"""A short fuzz from a fixed seed of everything that parses a stranger's bytes."""

import random

import pytest

from tests.hostile.fuzz import TARGETS, fuzz

INPUTS = 800


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_raises_anything_but_our_faults_or_takes_long(name: str) -> None:
    assert fuzz(TARGETS[name], random.Random(name), INPUTS, float("inf")) == []
