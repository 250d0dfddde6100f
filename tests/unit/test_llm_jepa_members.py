"""Which runs an arm of Paper C has, and that none is trained twice.

1. Arms of one base differ in their method's fields alone. 2. Five seeds for the headline, three elsewhere, one for SmolLM2; the
reader's own replace them. 3. Searches have as many settings for one method as for the other. 4. A run that goes on from another is
planned after it, with the same seed. 5. A tier without a base leaves its arms out; an unknown name is refused with the nearest.
6. ``source`` replaces generated pairs by the public ones that they stand in for. 7. Every planned run has its own key and label.
8. The paper tier is the published protocol.
"""

from __future__ import annotations

from dataclasses import asdict

import pytest

from jepa_nb.errors import ConfigError, UnknownName
from jepa_nb.experiments.llm_jepa import jobs
from jepa_nb.experiments.llm_jepa.arms import METHODS, SEARCHES, members
from jepa_nb.experiments.llm_jepa.config import TIERS

PLAIN = [name for name, change in METHODS.items() if isinstance(change, dict)]


def config(arm: str, tier: str = "laptop", **options):
    return members(tier, [arm], seeds=[0], **options)[0].config


@pytest.mark.parametrize("method", PLAIN)
def test_an_arm_differs_from_its_base_in_its_own_fields_alone(method):
    base, found = asdict(config("sweep.ntp")), asdict(config(f"sweep.{method}"))
    assert {name for name in base if base[name] != found[name]} <= set(METHODS[method])
    assert found["seed"] == 0 and METHODS[method].items() <= found.items()


def test_rates_and_equal_cost_change_one_thing():
    base = config("sweep.ntp")
    assert config("sweep.rate_double").lr == 2 * base.lr and config("sweep.ntp_flops").epochs == 6 and base.epochs == 4


def test_seeds_follow_the_base_and_the_readers_own_replace_them():
    counts = {arm: len(members("laptop", [arm])) for arm in ("main.jepa", "sweep.jepa", "smol.jepa")}
    assert counts == {"main.jepa": 5, "sweep.jepa": 3, "smol.jepa": 1}
    assert [member.config.seed for member in members("laptop", ["main.ntp", "sweep.ntp"], seeds=[9, 8])] == [9, 8, 9, 8]


def test_both_searches_have_as_many_settings():
    assert len(SEARCHES["jepa"]) == len(SEARCHES["ntp"]) == 6
    settings = {tuple(sorted(asdict(config(f"sweep.{method}")).items(), key=str)) for search in SEARCHES.values() for method in search}
    assert len(settings) == 12


def test_overrides_come_before_the_method_and_the_seed_is_none_of_them():
    assert config("sweep.rate_half", overrides={"lr": 0.2}).lr == 0.1
    with pytest.raises(ConfigError, match="parameter 'seeds'"):
        config("sweep.ntp", overrides={"seed": 3})


def test_a_run_builds_on_the_run_whose_weights_it_takes():
    for arm, start in (("adapters.lora8_jepa", "grounds.ntp"), ("sentiment.from_jepa", "verses.jepa")):
        (job,) = jobs.jobs("laptop", [arm], seeds=[2])
        (need,) = job.needs
        assert (need.arm, need.seed) == (start, 2) and job.spec.needs == (need.spec.key,)
        for field in ("width", "depth", "vocab_size", "vocab_recipes", "max_length"):
            assert job.spec.config[field] == need.spec.config[field]


def test_a_tier_leaves_out_what_it_has_not_and_unknown_names_offer_the_nearest():
    assert members("laptop", ["gemma.jepa"]) == [] and len(members("gpu", ["gemma.jepa"])) == 3
    with pytest.raises(UnknownName, match="did you mean 'sweep'"):
        members("laptop", ["swep.jepa"])
    with pytest.raises(UnknownName, match="did you mean 'jepa'"):
        members("laptop", ["sweep.jeepa"])


def test_the_source_replaces_generated_pairs_by_the_public_ones():
    local = {arm: jobs.jobs("laptop", [arm], seeds=[0], source="local")[0].spec.config for arm in ("main.ntp", "sql.ntp", "verses.ntp")}
    assert (local["main.ntp"]["recipe"], local["main.ntp"]["source"]) == ("nl_rx_synth", "local")
    assert (local["sql.ntp"]["recipe"], local["sql.ntp"]["source"]) == ("spider", "local")
    assert local["verses.ntp"]["source"] == TIERS["laptop"].bases["verses"].source


@pytest.mark.parametrize("tier", list(TIERS))
def test_every_planned_run_has_its_own_label_and_at_full_size_its_own_key(tier):
    arms = [f"{base}.{method}" for base in ("main", "sweep") for method in PLAIN if method not in ("from_ntp", "from_jepa", "lam10_k1")]
    found = jobs.jobs(tier, arms, seeds=[0])
    assert len({job.label for job in found}) == len(found)
    if tier == "laptop":
        assert len({job.spec.key for job in found if job.arm.startswith("sweep")}) == len(found) / 2
    assert all(job.seconds > 0 and job.recipes for job in found)


def test_the_paper_tier_is_the_published_protocol():
    found = config("main.jepa", tier="paper")
    published = {"pretrained": "llama_3_2_1b", "recipe": "nl_rx_synth", "epochs": 4, "batch": 128, "lr": 2e-5, "warmup": 0.0, "clip": 1.0, "lam": 1.0,
                 "k": 1, "gamma": 1.0, "max_length": 512, "max_new_tokens": 128, "distance": "cosine"}
    assert published.items() <= asdict(found).items()
    assert TIERS["paper"].seeds == (82, 23, 37, 84, 4) and found.steps_per_epoch == 62
