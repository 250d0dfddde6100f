"""Claims: whatever goes wrong while fetching, one sentence names the remedy, and the cache is as before, nothing half-written."""

from __future__ import annotations

import errno
import hashlib
import multiprocessing
import os
import shutil
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from jepa_nb import paths
from jepa_nb.data import archives, commands, fetch, hub, recipes
from jepa_nb.data.recipes import Member, Package, Recipe
from jepa_nb.errors import DataError

CONTENT = {"sample/a.csv": b"text,label\nx,0\ny,1\n" * 1000, "sample/b.bin": os.urandom(60_000)}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_HOME", str(tmp_path / "home"))


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "index" / "sample_data-1.0-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in CONTENT.items():
            archive.writestr(name, data)
    return path


@pytest.fixture
def recipe(wheel):
    members = tuple(Member(name, hashlib.sha256(data).hexdigest(), len(data)) for name, data in CONTENT.items())
    data = wheel.read_bytes()
    package = Package("sample-data==1.0", sha256=hashlib.sha256(data).hexdigest(), bytes=len(data), members=members)
    return Recipe("sample", "Sample", "none", (), embedded=(package,))


def downloader(wheel, calls=None):
    def download(package, folder):
        if calls is not None:
            calls.append(package.package)
        return Path(shutil.copy(wheel, folder))

    return download


def changed(recipe, **fields):
    return replace(recipe, embedded=(replace(recipe.embedded[0], **fields),))


def cached():
    """Every file of the cache but the locks, with its content."""
    found = [path for path in paths.cache().rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {str(path.relative_to(paths.cache())): path.read_bytes() for path in found}


def fails(recipe, download, match):
    before = cached()
    with pytest.raises(DataError, match=match) as caught:
        fetch.fetch_recipe(recipe, download=download)
    assert cached() == before
    assert not list(paths.cache().glob(".fetch-*"))
    assert "\n" not in str(caught.value)


def test_members_arrive_whole_and_a_second_fetch_downloads_nothing(recipe, wheel):
    calls = []
    found = fetch.fetch_recipe(recipe, download=downloader(wheel, calls))
    assert {name: path.read_bytes() for name, path in found.items()} == CONTENT
    assert fetch.fetch_recipe(recipe, download=downloader(wheel, calls)) == found and len(calls) == 1


def test_a_wrong_archive_sha256_is_refused(recipe, wheel):
    fails(changed(recipe, sha256="0" * 64), downloader(wheel), "has not the pinned sha256.*fetch again")


def test_a_wrong_member_sha256_is_refused_and_the_good_member_is_not_kept(recipe, wheel):
    first, second = recipe.embedded[0].members
    wrong = changed(recipe, members=(first, replace(second, sha256="0" * 64)))
    fails(wrong, downloader(wheel), "'sample/b.bin' of sample-data==1.0 is not what the recipe pins.*sha256.*fetch again")


def test_wrong_size_and_wrong_row_count_are_refused(recipe, wheel):
    first, second = recipe.embedded[0].members
    fails(changed(recipe, members=(replace(first, bytes=7),)), downloader(wheel), "19000 bytes instead of 7")
    fails(changed(recipe, members=(replace(first, rows=2998),)), downloader(wheel), "2999 rows instead of 2998")
    fetch.fetch_recipe(changed(recipe, members=(replace(first, rows=2999), second)), download=downloader(wheel))


def test_a_missing_member_is_named(recipe, wheel):
    absent = changed(recipe, members=(*recipe.embedded[0].members, Member("sample/c.txt", "0" * 64, 1)))
    fails(absent, downloader(wheel), "sample-data==1.0 has no member 'sample/c.txt'.*update the checkout")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_archive_is_refused_with_and_without_a_pinned_sha256(recipe, wheel, share):
    wheel.write_bytes(wheel.read_bytes()[:int(share * wheel.stat().st_size)])
    fails(recipe, downloader(wheel), "has not the pinned sha256")
    fails(changed(recipe, sha256=""), downloader(wheel), "is truncated or damaged.*fetch` again")


@pytest.mark.parametrize("offset", [200, 2000, 30_000])
def test_a_damaged_byte_inside_an_unpinned_archive_is_noticed(recipe, wheel, offset):
    data = bytearray(wheel.read_bytes())
    data[offset:offset + 40] = bytes(40)
    wheel.write_bytes(data)
    fails(changed(recipe, sha256=""), downloader(wheel), "damaged|is not what the recipe pins")


def test_a_damaged_sdist_is_refused(recipe, tmp_path):
    bad = tmp_path / "sample_data-1.0.tar.gz"
    bad.write_bytes(b"\x1f\x8b" + bytes(100))
    fails(changed(recipe, sha256="", format="sdist"), downloader(bad), "is truncated or damaged")


def test_an_sdist_is_read_below_its_top_folder(recipe, tmp_path):
    for name, data in CONTENT.items():
        (tmp_path / "sample_data-1.0" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sample_data-1.0" / name).write_bytes(data)
    archive = shutil.make_archive(str(tmp_path / "sample_data-1.0"), "gztar", tmp_path, "sample_data-1.0")
    found = fetch.fetch_recipe(changed(recipe, sha256="", format="sdist"), download=downloader(archive))
    assert {name: path.read_bytes() for name, path in found.items()} == CONTENT


@pytest.mark.parametrize("step", ["copyfileobj", "mkdtemp", "replace"])
def test_a_full_disk_is_told_with_the_remedy(recipe, wheel, monkeypatch, step):
    def full(*arguments, **options):
        if step == "copyfileobj":
            arguments[1].write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    owner = {"copyfileobj": fetch.shutil, "mkdtemp": fetch.tempfile, "replace": fetch.os}[step]
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, full)
        fails(recipe, downloader(wheel), "disk is full.*JEPA_NB_HOME")
    assert len(fetch.fetch_recipe(recipe, download=downloader(wheel))) == 2


def test_an_unwritable_cache_is_told_with_the_remedy(recipe, wheel, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("JEPA_NB_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(DataError, match="cannot write.*JEPA_NB_HOME"):
        fetch.fetch_recipe(recipe, download=downloader(wheel))


def test_a_package_index_out_of_reach_gives_one_sentence(recipe, monkeypatch):
    closed = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
    for variable, value in closed.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    fails(recipe, archives.pip_download, "could not fetch sample-data==1.0 .*check the network.*data fetch` again")


def test_pip_itself_fetches_a_wheel(recipe, wheel, monkeypatch):
    with zipfile.ZipFile(wheel, "a") as archive:  # what makes a zip a wheel
        archive.writestr("sample_data-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: sample-data\nVersion: 1.0\n")
        archive.writestr("sample_data-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("sample_data-1.0.dist-info/RECORD", "")
    for variable, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheel.parent), "PIP_CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(variable, value)
    found = fetch.fetch_recipe(changed(recipe, sha256=""), download=archives.pip_download)
    assert {name: path.read_bytes() for name, path in found.items()} == CONTENT


def test_pips_last_error_is_told_and_its_warnings_are_not():
    stderr = ("WARNING: Location 'x' is ignored: it is no URL\nERROR: Could not find a version (from versions: none)\n"
              "ERROR: No matching distribution found for a==1\nWARNING: Location 'y' is ignored: it is no URL\n")
    assert archives._last_error(stderr) == "No matching distribution found for a==1"
    assert archives._last_error("") == "pip gave no reason"


def test_a_damaged_cached_member_is_reported_and_mended_without_a_download(recipe, wheel):
    calls = []
    found = fetch.fetch_recipe(recipe, download=downloader(wheel, calls))
    found["sample/b.bin"].write_bytes(b"short")
    fetch.fetch_recipe(recipe, download=downloader(wheel, calls))
    assert found["sample/b.bin"].read_bytes() == CONTENT["sample/b.bin"] and len(calls) == 1


def test_a_damaged_cached_archive_is_replaced(recipe, wheel):
    calls = []
    found = fetch.fetch_recipe(recipe, download=downloader(wheel, calls))
    (paths.cache() / "archives" / "sample-data-1.0.whl").write_bytes(b"PK damaged")
    found["sample/a.csv"].unlink()
    fetch.fetch_recipe(recipe, download=downloader(wheel, calls))
    assert found["sample/a.csv"].read_bytes() == CONTENT["sample/a.csv"] and len(calls) == 2


def test_a_large_archive_is_dropped_once_extracted(recipe, wheel, monkeypatch):
    monkeypatch.setattr(fetch, "KEEP_ARCHIVE_BYTES", 1000)
    fetch.fetch_recipe(recipe, download=downloader(wheel))
    assert sorted(cached()) == ["members/sample-data-1.0/sample/a.csv", "members/sample-data-1.0/sample/b.bin"]


def test_without_members_the_archive_itself_is_the_file(recipe, wheel):
    found = fetch.fetch_recipe(changed(recipe, members=()), download=downloader(wheel))
    assert list(found) == ["sample-data-1.0.whl"] and found["sample-data-1.0.whl"].read_bytes() == wheel.read_bytes()


def test_an_installed_package_of_the_pinned_version_needs_no_download(recipe, tmp_path, monkeypatch):
    class Installed:
        version = "1.0"

        def locate_file(self, path):
            return tmp_path / "site" / path

    for name, data in CONTENT.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_bytes(data)
    monkeypatch.setattr(archives.metadata, "distribution", lambda name: Installed())
    found = fetch.fetch_recipe(recipe, download=None)
    assert found["sample/a.csv"].read_bytes() == CONTENT["sample/a.csv"]
    monkeypatch.setattr(Installed, "version", "1.1")
    assert archives.installed(recipe.embedded[0]) is None


def test_an_edited_installed_file_is_not_trusted(recipe, wheel, tmp_path, monkeypatch):
    (tmp_path / "sample").mkdir()
    for name in CONTENT:
        (tmp_path / name).write_bytes(b"edited")
    monkeypatch.setattr(archives, "installed", lambda package: lambda path: (tmp_path / path).open("rb"))
    found = fetch.fetch_recipe(recipe, download=downloader(wheel))
    assert {name: path.read_bytes() for name, path in found.items()} == CONTENT


def _fetch_slowly(recipe, wheel, log, barrier):
    def download(package, folder):
        with open(log, "a") as handle:
            handle.write("downloaded\n")
        time.sleep(0.3)
        return Path(shutil.copy(wheel, folder))

    barrier.wait(30)
    fetch.fetch_recipe(recipe, download=download)


def test_of_two_processes_one_fetches_and_the_other_waits(recipe, wheel, tmp_path):
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    both = [context.Process(target=_fetch_slowly, args=(recipe, wheel, tmp_path / "log", barrier)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    assert (tmp_path / "log").read_text() == "downloaded\n"
    assert not list(paths.cache().glob(".fetch-*"))


@pytest.fixture
def only_sample(recipe, wheel, monkeypatch):
    monkeypatch.setattr(recipes, "names", lambda: ["sample"])
    for owner in (recipes, fetch):
        monkeypatch.setattr(owner, "load", lambda name: recipe)
    original = fetch.fetch_recipe
    monkeypatch.setattr(fetch, "fetch_recipe", lambda r, source, *, download: original(r, source, download=downloader(wheel)))


def test_the_commands_print_one_line_each_and_return_a_status(only_sample, capsys, wheel):
    assert commands.verify_recipes() == 1
    assert capsys.readouterr().out == ("[fail] sample: sample/a.csv (not fetched yet) and 1 more; "
                                       "run `python -m jepa_nb data fetch sample`\n")
    assert commands.fetch_recipes() == 0 and commands.verify_recipes(["sample"]) == 0
    assert capsys.readouterr().out == "[ok] sample: 2 files, 0.1 MB\n[ok] sample: 2 files as pinned\n"
    (paths.cache() / "members" / "sample-data-1.0" / "sample" / "b.bin").write_bytes(b"x" * 60_000)
    assert commands.verify_recipes() == 1
    assert "sample/b.bin (its sha256 is not the pinned one)" in capsys.readouterr().out
    assert commands.fetch_recipes(["sample"], "hub") == 1
    assert capsys.readouterr().out == "[fail] sample: recipe 'sample' does not offer source 'hub'; it offers: embedded.\n"


def test_a_failing_recipe_does_not_stop_the_others_and_is_counted(capsys):
    assert commands.fetch_recipes(["toy_sentence", "toy_pictures"], "generated") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[fail] toy_sentence: unknown recipe 'toy_sentence': did you mean 'toy_sentences'?")
    assert lines[1] == "[ok] toy_pictures: generated, nothing to fetch"


@pytest.mark.parametrize("name", ["c4", "imagenet"])
def test_a_hub_data_set_out_of_reach_gives_one_sentence(name):
    with pytest.raises(DataError, match="from the Hugging Face hub.*check the network.*or use source 'local'") as caught:
        list(hub.stream(recipes.load(name), "train", 1))
    assert "\n" not in str(caught.value)


def test_hub_weights_out_of_reach_give_one_sentence():
    with pytest.raises(DataError, match="google-bert/bert-base-uncased.*from the Hugging Face hub.*check the network"):
        fetch.fetch("bert_base_uncased", "hub")


def test_a_connection_that_breaks_in_mid_stream_gives_one_sentence(monkeypatch):
    import datasets
    from huggingface_hub.errors import HfHubHTTPError

    transport = next(base for base in HfHubHTTPError.__bases__ if base is not OSError)

    def rows(*arguments, **options):
        yield {"text": "first"}
        raise transport("peer closed the connection")

    monkeypatch.setattr(datasets, "load_dataset", rows)
    found = hub.stream(recipes.load("c4"), "train", 5)
    assert next(found) == {"text": "first"}
    with pytest.raises(DataError, match="peer closed the connection.*check the network"):
        next(found)


def test_no_code_from_the_hub_is_run(monkeypatch):
    import datasets

    asked = {}
    monkeypatch.setattr(datasets, "load_dataset", lambda *arguments, **options: asked.update(options) or iter(()))
    list(hub.stream(recipes.load("c4"), "validation", 5))
    assert asked == {"revision": recipes.load("c4").hub["revision"], "split": "validation", "streaming": True}
