"""The corpus: whole, the same from every call, and of the mix that it promises."""

import json
from pathlib import Path

import pytest
from PIL import Image

from traffic import corpus, making

FEW = tuple(row for row in making.PICTURES if row.name in ("icon.png", "thumbnail.jpg"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus of small pictures and one chunk."""
    monkeypatch.setattr(making, "PICTURES", FEW)
    making.make(tmp_path)
    return tmp_path


def test_what_was_made_is_what_is_loaded(folder: Path) -> None:
    made = tuple(making.entries())
    loaded = corpus.load(folder)
    assert (*loaded.pictures, *loaded.chunks) == made
    assert [len(each.files) for each in loaded.chunks] == [making.FRAMES] * making.CHUNK.many


def test_a_corpus_is_made_once(folder: Path) -> None:
    before = {each.name: each.stat().st_mtime_ns for each in folder.iterdir()}
    making.make(folder)
    assert {each.name: each.stat().st_mtime_ns for each in folder.iterdir()} == before


def test_a_folder_without_a_corpus_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(corpus.NoCorpus, match="make corpus"):
        corpus.load(tmp_path)


def test_an_older_recipe_is_made_anew(folder: Path) -> None:
    manifest = folder / corpus.MANIFEST
    manifest.write_text(json.dumps({"recipe": corpus.RECIPE - 1, "entries": []}))
    with pytest.raises(corpus.NoCorpus):
        corpus.load(folder)
    making.make(folder)
    assert corpus.load(folder).pictures


def test_the_mix_is_mostly_jpeg_and_reaches_from_thumbnails_to_twelve_megapixels() -> None:
    weights = {row.name: row.weight for row in making.PICTURES}
    assert sum(weights.values()) == 100
    assert sum(weight for name, weight in weights.items() if name.endswith(".jpg")) >= 60
    pixels = [row.height * row.width for row in making.PICTURES]
    assert min(pixels) < 20_000
    assert max(pixels) > 12_000_000


def test_a_photograph_has_the_entropy_of_photographs_and_a_page_less() -> None:
    photo, page = making.photo(480, 640, 1), making.page(480, 640, 1)
    assert 1.2 < len(making.jpeg(90, photo)) * 8 / (480 * 640) < 3
    assert len(making.png(page)) < len(making.png(photo)) / 3


def test_a_turned_picture_is_planned_upright() -> None:
    data = making.turned(80, making.photo(48, 64, 1))
    known = making.reference.answer([data])
    assert (known.height, known.width) == (64, 48)


def test_a_camera_s_picture_has_the_size_that_was_asked_for() -> None:
    assert Image.fromarray(making.camera(60, 80, 1)).size == (80, 60)
