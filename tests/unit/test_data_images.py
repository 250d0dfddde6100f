"""Claims: splits are by original; one design of emoji stays on one side; image folders and hub streams share the interface."""

from __future__ import annotations

import io
import zipfile

import av
import numpy as np
import pytest
import torch
from PIL import Image

from jepa_nb import paths
from jepa_nb.data import folders, images, originals
from jepa_nb.data.recipes import Package, Recipe
from jepa_nb.errors import ConfigError, DataError


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_HOME", str(tmp_path / "home"))


def recipe(**fields):
    return Recipe("sample", "Sample", "none", (), **fields)


def picture(value, size=(60, 40), mode="RGB"):
    return Image.new(mode, size, value)


def png(image):
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def read_files(monkeypatch, recipe_, found):
    monkeypatch.setattr(originals.fetch, "fetch_recipe", lambda *_: found)
    return originals.originals_of(recipe_, "embedded")


def test_two_views_are_one_original_and_grey_becomes_rgb(tmp_path, monkeypatch):
    for name, image in (("l", picture("red")), ("r", picture("blue")), ("g", picture(90, mode="L"))):
        image.save(tmp_path / f"{name}.png")
    entries = [{"name": "pair", "split": "train", "files": ["l.png", "r.png"]},
               {"name": "grey", "split": "val", "files": ["g.png"]}]
    source = recipe(embedded=(Package("p==1"),), read={"kind": "stills", "originals": entries})
    pair, grey = read_files(monkeypatch, source, {f"{n}.png": tmp_path / f"{n}.png" for n in "lrg"})
    assert len(pair.frames) == 2 and pair.split == "train" and grey.split == "val"
    assert grey.frames[0].shape == (40, 60, 3) and (grey.frames[0] == 90).all()


def clip(path, frames):
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())


def test_shots_of_one_clip_hold_their_own_frames_only(tmp_path, monkeypatch):
    clip(tmp_path / "c.mp4", [np.full((48, 64, 3), 30 if n < 7 else 220, np.uint8) for n in range(20)])
    entries = [{"name": "dark", "split": "train", "clip": "c.mp4", "frames": [0, 7]},
               {"name": "bright", "split": "val", "clip": "c.mp4", "frames": [7, 20]}]
    source = recipe(embedded=(Package("p==1"),), read={"kind": "video", "every": 3, "originals": entries})
    for _ in range(2):  # the second reading comes from the cache
        dark, bright = read_files(monkeypatch, source, {"c.mp4": tmp_path / "c.mp4"})
        assert len(dark.frames) == 3 and max(frame.mean() for frame in dark.frames) < 60
        assert len(bright.frames) == 4 and min(frame.mean() for frame in bright.frames) > 190


def test_a_damaged_clip_or_cache_is_named(tmp_path, monkeypatch):
    (tmp_path / "c.mp4").write_bytes(b"no video" * 50)
    entry = {"name": "a", "split": "train", "clip": "c.mp4", "frames": [0, 5]}
    source = recipe(embedded=(Package("p==1"),), read={"kind": "video", "every": 1, "originals": [entry]})
    with pytest.raises(DataError, match="c.mp4 cannot be decoded"):
        read_files(monkeypatch, source, {"c.mp4": tmp_path / "c.mp4"})
    assert not list((paths.cache() / "frames").glob("*.npy"))
    clip(tmp_path / "c.mp4", [np.zeros((48, 64, 3), np.uint8)] * 6)
    read_files(monkeypatch, source, {"c.mp4": tmp_path / "c.mp4"})
    (cached,) = (paths.cache() / "frames").glob("*.npy")
    cached.write_bytes(cached.read_bytes()[:1000])
    with pytest.raises(DataError, match="are damaged .*delete"):
        read_files(monkeypatch, source, {"c.mp4": tmp_path / "c.mp4"})


def test_tones_and_genders_of_an_emoji_share_its_split():
    same = ["1f9d1-200d-1f680", "1f468-200d-1f680", "1f469-200d-1f680"]
    assert len({originals.design(name) for name in same}) == 1
    assert originals.design("1f3c3-200d-2640-fe0f") == originals.design("1f3c3-1f3ff") == "1f3c3"
    for share in np.linspace(0, 1, 11):
        assert len({originals.emoji_split(name, share) for name in same}) == 1
    assert originals.emoji_split("1f600", 0) == "train" and originals.emoji_split("1f600", 1) == "val"


def test_sheets_hold_each_emoji_of_their_split_once_on_white(tmp_path, monkeypatch):
    names = [f"1f{number:03x}" for number in range(0x600, 0x628)] + ["1f9d1-1f3fb"]
    with zipfile.ZipFile(tmp_path / "e.whl", "w") as archive:
        for number, name in enumerate(names):
            archive.writestr(f"e/{name}.png", png(picture((number, 0, 200, 255), (10, 10), "RGBA")))
    read = {"kind": "emoji", "folder": "e/", "validation_share": 0.3, "columns": 3, "cell": 14}
    sheets = read_files(monkeypatch, recipe(embedded=(Package("p==1"),), read=read), {"e.whl": tmp_path / "e.whl"})
    seen = {"train": [], "val": []}
    for sheet in sheets:
        assert sheet.frames[0].shape == (42, 42, 3)
        colours = {tuple(colour) for colour in sheet.frames[0].reshape(-1, 3).tolist()}
        seen[sheet.split] += [red for red, _, blue in colours if blue == 200]
    assert sorted(seen["train"] + seen["val"]) == list(range(40)) and seen["val"]
    assert {names[red] for red in seen["val"]} == {name for name in names[:40] if originals.emoji_split(name, 0.3) == "val"}


def test_generated_pictures_stand_in_both_splits_and_are_described():
    found = images.load_originals("generated", ["toy_pictures"])
    assert [original.split for original in found].count("val") == 3 and len(found) == 15
    assert "12 training + 3 validation originals (toy_pictures 12 + 3)" in images.describe(found)
    again = images.load_originals("generated", ["toy_pictures"])
    assert all(np.array_equal(a.frames[0], b.frames[0]) for a, b in zip(found, again))


def test_crops_have_the_stated_shape_range_and_origin():
    flat = [images.Original(str(v), "k", "train", [np.full((50, 70, 3), v, np.uint8)]) for v in (0, 51, 255)]
    crops, origin = images.sample_crops(flat, 30, 16, np.random.default_rng(0), split="train")
    assert crops.shape == (30, 3, 16, 16) and crops.dtype == torch.float32 and origin.dtype == torch.int64
    expected = torch.tensor([-1.0, -0.6, 1.0])[origin]
    torch.testing.assert_close(crops.mean((1, 2, 3)), expected, atol=1e-6, rtol=0)
    assert crops.amin() >= -1 and crops.amax() <= 1


def test_the_resize_is_antialiased():
    board = np.indices((160, 160)).sum(0) % 2 * 255
    fine = [images.Original("board", "k", "train", [np.repeat(board[..., None], 3, 2).astype(np.uint8)])]
    crops, _ = images.sample_crops(fine, 40, 16, np.random.default_rng(0), split="train")
    assert (crops.std((1, 2, 3)) < 0.3).sum() > 20  # the squares of a shrunk board melt to grey; plain sampling keeps them


def test_an_empty_split_is_refused():
    found = [images.Original("a", "k", "train", [np.zeros((9, 9, 3), np.uint8)])]
    with pytest.raises(ConfigError, match="no original of split 'val'"):
        images.sample_crops(found, 4, 8, np.random.default_rng(0), split="val")


def folder_recipe(count=5):
    local = {"files": ["in/train", "in/val"], "splits": {"train": "in/train", "val": "in/val"},
             "images": {"train": count, "val": 2}}
    hub = {"kind": "dataset", "id": "x/y", "revision": "r", "image": "image", "splits": {"train": "train", "val": "validation"},
           "images": {"train": 4, "val": 2}}
    return recipe(local=local, hub=hub, read={"kind": "imagenet", "area": [0.3, 1.0]})


def test_an_image_folder_is_read_lazily_class_by_class(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_DATA", str(tmp_path))
    for split, classes in (("train", "abc"), ("val", "ab")):
        for name in classes:
            (tmp_path / "in" / split / name).mkdir(parents=True)
            for number in range(3):
                picture("teal").save(tmp_path / "in" / split / name / f"{name}{number}.png")
    found = originals.originals_of(folder_recipe(), "local")
    assert [original.name for original in found if original.split == "train"] == ["a0", "b0", "c0", "a1", "b1"]
    assert all(original.area == (0.3, 1.0) for original in found)
    crops, origin = images.sample_crops(found, 10, 24, np.random.default_rng(0), split="val")
    assert crops.shape == (10, 3, 24, 24) and {found[i].split for i in origin.tolist()} == {"val"}


def test_a_damaged_or_absent_picture_is_named(tmp_path):
    (tmp_path / "bad.png").write_bytes(png(picture("teal"))[:60])
    with pytest.raises(DataError, match="bad.png cannot be decoded"):
        folders.decode(tmp_path / "bad.png")
    with pytest.raises(DataError, match="no picture"):
        folders.images(paths.project() / "data_recipes", 5)


def test_hub_pictures_are_written_once_and_completely():
    asked = []

    def stream(recipe_, split, count):
        asked.append(split)
        return ({"image": {"bytes": png(picture((number, 0, 0)))}} for number in range(count))

    place = folders.materialise(folder_recipe(), "train", stream=stream)
    assert folders.materialise(folder_recipe(), "train", stream=stream) == place and asked == ["train"]
    assert [folders.decode(path)[0, 0, 0] for path in folders.images(place, 9)] == [0, 1, 2, 3]


def test_a_hub_stream_that_ends_early_leaves_nothing():
    def short(recipe_, split, count):
        yield {"image": {"bytes": png(picture("teal"))}}

    with pytest.raises(DataError, match="gave 1 of 2 pictures"):
        folders.materialise(folder_recipe(), "val", stream=short)
    assert not [path for path in paths.cache().rglob("*") if path.suffix == ".jpg" or path.name.startswith(".stream")]
