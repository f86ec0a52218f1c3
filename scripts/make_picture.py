"""Draws examples/picture.jpg, the bundled picture: hills at dusk, from a seed.

python scripts/make_picture.py examples/picture.jpg
"""

import sys

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

HEIGHT, WIDTH = 768, 1152
SKY_TOP, SKY_LOW = (38, 52, 96), (248, 178, 122)
HILLS = ((104, 92, 128), (74, 74, 104), (44, 58, 72), (20, 34, 38))
SUN_AT, SUN_RADIUS = (330, 800), 46


def ridge(rng: np.random.Generator, base: float, height: float) -> NDArray[np.float64]:
    """One hill line over the width: octaves of sines with random phase."""
    x = np.arange(WIDTH) / WIDTH
    line = np.full(WIDTH, base)
    for octave in range(1, 8):
        phase, wobble = rng.uniform(0, 2 * np.pi, 2)
        line -= height / octave**1.3 * np.sin(2 * np.pi * octave * 1.7 * x + phase + wobble)
    return line


def main(path: str) -> None:
    rng = np.random.default_rng(14)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    fade = (y / (HEIGHT * 0.75)).clip(0, 1)[..., None]
    scene = np.array(SKY_TOP) * (1 - fade) + np.array(SKY_LOW) * fade
    distance = np.hypot(y - SUN_AT[0], x - SUN_AT[1])
    scene += (np.exp(-((distance / 230) ** 2)) * 70)[..., None] * np.array((1.0, 0.75, 0.4))
    scene[distance < SUN_RADIUS] = (255, 236, 190)
    for depth, colour in enumerate(HILLS):
        line = ridge(rng, HEIGHT * (0.56 + 0.13 * depth), 26 + 16 * depth)
        below = y > line[None, :]
        grain = rng.normal(0, 3 + 3 * depth, (HEIGHT, WIDTH))
        shade = 14 * np.sin((y - line[None, :]) / (9 + 7 * depth)) + grain
        scene[below] = (np.array(colour) + shade[..., None])[below]
    scene += rng.normal(0, 2.0, scene.shape)
    picture = Image.fromarray(scene.clip(0, 255).astype(np.uint8))
    picture.filter(ImageFilter.GaussianBlur(0.7)).save(path, quality=88)


if __name__ == "__main__":
    main(sys.argv[1])
