"""The body forms: one picture or many, order kept, the same bytes whatever the form."""

import base64

import msgpack
import pytest

from tests.golden_data import IMAGES
from tests.service.running import Running, problem, unpack

NAMES = ("photo.jpg", "1x1.png", "exif6.jpg", "rgba.png", "animated.gif")
DATA = [(IMAGES / name).read_bytes() for name in NAMES]
MSGPACK = {"Content-Type": "application/msgpack"}


def images(*pictures: bytes) -> list[dict[str, object]]:
    return [{"type": "image", "data": data} for data in pictures]


def test_every_form_gives_the_same_bytes_and_digests_in_the_order_sent(service: Running) -> None:
    singles = [unpack(service.post(data, params={"dtype": "uint8"}).content) for data in DATA]
    files = [("images", (name, data)) for name, data in zip(NAMES, DATA, strict=True)]
    form = service.post(files=files, data={"dtype": "uint8"})
    packed = service.post(
        msgpack.packb({"items": images(*DATA), "dtype": "uint8"}), headers=MSGPACK
    )
    urls = [f"data:image/x;base64,{base64.b64encode(data).decode()}" for data in DATA]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    plain = [{"type": "image", "data": url.partition(",")[2]} for url in urls]
    openai = service.post(json={"items": parts, "dtype": "uint8"})
    base64s = service.post(json={"items": plain}, params={"dtype": "uint8"})
    for answer in (form, packed, openai, base64s):
        assert answer.status_code == 200, answer.text
        head, data = unpack(answer.content)
        assert data == b"".join(single for _, single in singles)
        assert [item["digest"] for item in head["items"]] == [
            each["items"][0]["digest"] for each, _ in singles
        ]


def test_a_form_may_be_sent_in_pieces_of_any_size(service: Running) -> None:
    files = [("images", ("a", DATA[0])), ("images", ("b", DATA[1]))]
    request = service.client.build_request("POST", "/preprocess", files=files)
    form = request.read()
    whole = service.client.send(request).content

    def pieces() -> "list[bytes]":
        body, cut, parts = form, 1, []
        while body:
            parts.append(body[:cut])
            body, cut = body[cut:], cut * 3 % 1009 + 1
        return parts

    headers = {"Content-Type": request.headers["content-type"]}
    answer = service.post(iter(pieces()), headers=headers)
    assert unpack(answer.content)[1] == unpack(whole)[1]


@pytest.mark.parametrize(
    "label",
    ["image/png", "application/octet-stream", "text/html", "application/x-www-form-urlencoded", ""],
)
def test_the_bytes_decide_the_format_and_not_the_label(service: Running, label: str) -> None:
    answer = service.post(DATA[0], headers={"Content-Type": label} if label else {})
    assert answer.status_code == 200, answer.text
    assert unpack(answer.content)[0]["items"][0]["source"]["format"] == "jpeg"


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\0b", "日本.png", "x" * 5000, ""])
def test_a_file_name_is_never_looked_at(service: Running, name: str) -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="images"; filename="'
        + name.encode()
        + b'"\r\nContent-Type: image/nonsense\r\n\r\n'
        + DATA[0]
        + b"\r\n--b--\r\n"
    )
    answer = service.post(body, headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert answer.status_code == 200, answer.text


def test_a_parameter_may_come_twice_with_the_same_value_only(service: Running) -> None:
    body = msgpack.packb({"items": images(DATA[0]), "dtype": "uint8"})
    same = service.post(body, params={"dtype": "uint8"}, headers=MSGPACK)
    assert same.status_code == 200
    other = service.post(body, params={"dtype": "float32"}, headers=MSGPACK)
    assert problem(other) == (422, "bad_parameter", None)


def test_pictures_and_chunks_mix_in_one_request(service: Running) -> None:
    frames = [(IMAGES / f"frame{n}.png").read_bytes() for n in range(2)]
    items = [*images(DATA[1]), {"type": "video_chunk", "frames": frames}, *images(DATA[0])]
    head, data = unpack(service.post(msgpack.packb({"items": items}), headers=MSGPACK).content)
    assert [item["type"] for item in head["items"]] == ["image", "video_chunk", "image"]
    assert [grid[0] for grid in head["grid_thws"]] == [1, 2, 1]
    assert sum(item["length_bytes"] for item in head["items"]) == len(data)


def test_a_background_colours_transparent_pixels_and_drop_ignores_them(service: Running) -> None:
    rgba = (IMAGES / "rgba.png").read_bytes()
    seen = {
        background: unpack(
            service.post(rgba, params={"background": background, "dtype": "uint8"}).content
        )[1]
        for background in ("white", "#ffffff", "#FF0080", "drop")
    }
    assert seen["white"] == seen["#ffffff"]
    assert len(set(seen.values())) == 3


def test_the_caller_s_request_id_comes_back_and_a_strange_one_is_replaced(service: Running) -> None:
    answer = service.post(DATA[1], headers={"X-Request-ID": "trace-7"})
    assert answer.headers["x-request-id"] == "trace-7"
    answer = service.post(DATA[1], headers={"X-Request-ID": "two words"})
    assert answer.headers["x-request-id"] not in ("", "two words")


def test_the_timings_name_every_stage_up_to_packing(service: Running) -> None:
    timings = unpack(service.post(DATA[0]).content)[0]["timings_ms"]
    assert list(timings) == ["receive", "queue", "plan", "decode", "patchify", "pack"]
    assert all(spent >= 0 for spent in timings.values())
