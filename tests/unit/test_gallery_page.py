"""The gallery is one static, movable, escaped page.

1. Each link leads to a file in its own folder, and nothing is loaded from the network. 2. Text of sidecars is escaped.
3. What was not run is listed. 4. Rebuilding replaces the old page and leaves nothing behind.
"""

from __future__ import annotations

import json
import shutil
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from jepa_nb import gallery, papers
from jepa_nb.errors import DataError, UnknownName
from jepa_nb.ledger import Measurement, judge

NAME, NOTEBOOK = "paradox_fig2_mi_and_rank", "paradox/fig2_mi_and_rank"
EVIL = "<script>alert('x')</script> & \"quoted\""


class Page(HTMLParser):
    """Collects links, tags and identifiers, and checks that what is opened is closed."""

    VOID = {"meta", "img", "br", "wbr", "link"}

    def __init__(self, text):
        super().__init__()
        self.links, self.tags, self.ids, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.append(tag)
        self.links += [values[key] for key in ("href", "src") if key in values]
        self.ids += [values["id"]] if "id" in values else []
        self.open += [tag] if tag not in self.VOID else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_BUILD", str(tmp_path))
    figures = tmp_path / "laptop" / "figures"
    figures.mkdir(parents=True)
    verdicts = [judge(papers.claim("A.mi_text_low"), Measurement([0.1, 0.12, 0.14]), tier="laptop", standin=EVIL),
                judge(papers.claim("A.value.rank_text_late"), Measurement([1.0, 1.1, 1.2]), tier="laptop")]
    write_sidecar(figures, NAME, NOTEBOOK, verdicts)
    for suffix in ("png", "svg", "pdf", "csv"):
        (figures / f"{NAME}.{suffix}").write_bytes(b"content")
    executed = tmp_path / "laptop" / "notebooks" / f"{NOTEBOOK}.ipynb"
    executed.parent.mkdir(parents=True)
    executed.write_text("{}")
    return tmp_path


def write_sidecar(folder, name, notebook, verdicts=()):
    record = {"name": name, "title": EVIL, "paper_item": "Fig. 2", "known_from": "note", "finding": EVIL, "notebook": notebook,
              "tier": "laptop", "seeds": [0, 1, 2], "device": {}, "parameters": {"source": EVIL}, "overrides": {}, "data": {},
              "code": "", "versions": {}, "stand_ins": [EVIL], "verdicts": [verdict.record() for verdict in verdicts]}
    (folder / f"{name}.json").write_text(json.dumps(record))


def test_every_link_leads_to_a_file_beside_the_page_also_after_a_move(build):
    page = gallery.build("laptop")
    assert page == build / "gallery" / "index.html"
    moved = shutil.move(page.parent, build / "elsewhere")
    shutil.rmtree(build / "laptop")
    parsed = Page((build / "elsewhere" / "index.html").read_text())
    assert not parsed.open
    for link in parsed.links:
        if link.startswith("#"):
            assert link[1:] in parsed.ids
        else:
            assert (build / "elsewhere" / unquote(link)).is_file(), (link, moved)
    assert f"notebooks/{NOTEBOOK}.ipynb" in parsed.links and f"assets/{NAME}.csv" in parsed.links


def test_the_page_runs_nothing_and_loads_nothing(build):
    text = gallery.build("laptop").read_text()
    parsed = Page(text)
    assert not {"script", "link", "iframe"} & set(parsed.tags)
    assert not [link for link in parsed.links if "//" in link] and "url(" not in text and "@import" not in text


def test_text_is_escaped(build):
    text = gallery.build("laptop").read_text()
    assert "<script" not in text and text.count("&lt;script&gt;") >= 4


def test_verdicts_and_what_was_not_run_are_shown(build):
    text = gallery.build("laptop").read_text()
    assert '<span class="chip v-supports">supports</span>' in text and "measured 0.120 [0.0703, 0.170] nats" in text
    assert "Numbers that depend on scale" in text
    every = [papers.paper(name) for name in papers.names()]
    assert f"{sum(len(paper.claims) for paper in every) - 2} claims not attempted" in text and "1 figure ·" in text
    for paper in every:
        assert f"{len(paper.figures) - (paper.name == 'paradox')} not run at this tier" in text[text.index(f'<section id="{paper.name}">'):]


def test_a_rendered_notebook_is_linked_first(build):
    (build / "laptop" / "notebooks" / f"{NOTEBOOK}.html").write_text("<p>executed</p>")
    links = Page(gallery.build("laptop").read_text()).links
    assert links.index(f"notebooks/{NOTEBOOK}.html") < links.index(f"notebooks/{NOTEBOOK}.ipynb")


def test_a_figure_of_no_paper_comes_first(build):
    write_sidecar(build / "laptop" / "figures", "start_here", "00_start_here")
    (build / "laptop" / "figures" / "start_here.png").write_bytes(b"content")
    ids = Page(gallery.build("laptop").read_text()).ids
    assert ids.index("start") < ids.index("start_here") < ids.index("paradox") < ids.index(NAME)


def test_rebuilding_replaces_the_page_and_leaves_nothing_behind(build):
    first = gallery.build("laptop").read_bytes()
    (build / "gallery" / "assets" / "old.png").write_bytes(b"old")
    assert gallery.build("laptop").read_bytes() == first
    assert not (build / "gallery" / "assets" / "old.png").exists()
    assert sorted(file.name for file in build.iterdir()) == ["gallery", "laptop"]


def test_without_figures_the_page_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_BUILD", str(tmp_path))
    assert "<code>make figures</code>" in gallery.build("smoke").read_text()


def test_a_damaged_sidecar_keeps_the_old_page(build):
    before = gallery.build("laptop").read_bytes()
    (build / "laptop" / "figures" / f"{NAME}.json").write_text("{")
    with pytest.raises(DataError, match="run its notebook again"):
        gallery.build("laptop")
    assert (build / "gallery" / "index.html").read_bytes() == before
    assert sorted(file.name for file in build.iterdir()) == ["gallery", "laptop"]


def test_an_unknown_tier_offers_the_nearest():
    with pytest.raises(UnknownName, match="laptop"):
        gallery.build("labtop")
