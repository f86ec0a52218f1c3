"""Parameters: every value allowed, every other refused by name."""

import pytest

from service.errors import BadParameter
from service.http.parameters import ALLOWED, MAX_KNOWN, NAMES, OF_PLANS, parse
from service.types import Budget, Drop, Dtype, Rgb, Wanted

REFUSED = {
    "unknown": ([("sharpen", "1")], "'sharpen'"),
    "empty name": ([("", "1")], "''"),
    "bytes as a name": ([(b"dtype", "uint8")], "dtype"),
    "wrong case": ([("dtype", "UINT8")], "dtype='UINT8'"),
    "a form that is none": ([("format", "json")], "msgpack, vllm"),
    "hashes in a map": ([("known_hashes", {})], "list of at most 1024"),
    "too many hashes": ([("known_hashes", ["0" * 64] * (MAX_KNOWN + 1))], "at most 1024"),
    "a hash that is a number": ([("known_hashes", [0])], "64 hex digits"),
    "two sets of hashes": (
        [("known_hashes", "0" * 64), ("known_hashes", ["1" * 64])],
        "given twice",
    ),
    "no digits": ([("text_len", "x")], "text_len must be an integer from 0 to 16777216"),
    "no whole number": ([("text_len", "1.0")], "text_len must be an integer"),
    "a float": ([("text_len", 1.0)], "text_len must be an integer"),
    "a truth": ([("text_len", True)], "text_len must be an integer"),
    "a sign": ([("text_len", "+1")], "text_len must be an integer"),
    "a space": ([("text_len", " 1")], "text_len must be an integer"),
    "digits of another script": ([("text_len", "\u0661")], "text_len must be an integer"),
    "an empty number": ([("text_len", "")], "text_len must be an integer"),
    "a negative number": ([("text_len", -1)], "text_len must be an integer"),
    "a negative number in words": ([("text_len", "-1")], "text_len must be an integer"),
    "no model length": ([("max_model_len", 0)], "max_model_len must be an integer from 1"),
    "no minimum": ([("min_num_patches", "0")], "min_num_patches must be an integer from 1"),
    "too large": ([("max_num_patches", 2**24 + 1)], "max_num_patches must be an integer"),
    "far too large": ([("max_num_patches", 2**200)], "max_num_patches must be an integer"),
    "too many digits": ([("max_num_patches", "9" * 5000)], "max_num_patches must be an integer"),
    "two numbers": ([("text_len", "1"), ("text_len", 2)], "given twice"),
    "number": ([("dtype", 8)], "dtype must be a string"),
    "nothing": ([("model", None)], "model must be a string"),
    "twice": ([("dtype", "uint8"), ("dtype", "float32")], "given twice"),
    "short colour": ([("background", "#fff")], "background"),
    "long colour": ([("background", "#ffffff00")], "background"),
    "colour with a newline": ([("background", "#ffffff\n")], "background"),
    "colour without a hash": ([("background", "ffffff")], "background"),
    "not hex": ([("background", "#gggggg")], "background"),
}


@pytest.mark.parametrize(("pairs", "told"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_in_the_table_is_refused_by_name(
    pairs: list[tuple[str, object]], told: str
) -> None:
    with pytest.raises(BadParameter) as refusal:
        parse(pairs)
    assert told in refusal.value.detail


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in ALLOWED.items() for value in values]
)
def test_every_documented_value_is_taken(name: str, value: str) -> None:
    parse([(name, value)])


def test_without_parameters_the_profile_decides_all_but_the_white_behind_transparency() -> None:
    assert parse([]) == Wanted(background=Rgb(255, 255, 255))


def test_known_hashes_are_a_list_or_words_between_commas() -> None:
    hashes = ["0" * 64, "1" * 64]
    pairs = [("known_hashes", hashes), ("known_hashes", ",".join(reversed(hashes)))]
    assert parse(pairs).known_hashes == set(hashes)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(OF_PLANS)))
def test_a_plan_takes_only_what_decides_it(name: str) -> None:
    with pytest.raises(BadParameter):
        parse([(name, "0" * 64)], OF_PLANS)


def test_an_integer_is_a_number_or_its_digits() -> None:
    pairs = [("max_model_len", "4096"), ("max_model_len", 4096), ("max_num_patches", 0)]
    assert parse(pairs).budget == Budget(max_model_len=4096, max_num_patches=0)


def test_a_background_is_a_colour_or_drop() -> None:
    assert parse([("background", "#0A141e")]).background == Rgb(10, 20, 30)
    assert parse([("background", "drop")]).background is Drop.DROP


def test_the_same_value_twice_is_once() -> None:
    assert parse([("dtype", "uint8"), ("dtype", "uint8")]).dtype is Dtype.UINT8


def test_an_echo_is_short_and_printable() -> None:
    with pytest.raises(BadParameter) as refusal:
        parse([("\x00é" * 500, "1")])
    assert len(refusal.value.detail) < 200
    assert "\x00" not in refusal.value.detail
