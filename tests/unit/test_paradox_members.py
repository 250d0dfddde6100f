"""Which runs an arm has, and that none is trained twice.

1. Both modalities of every seed, side by side; two controls are of text alone. 2. Five seeds for the headline, fewer for
controls; the reader's own seeds replace them. 3. Few documents means as many as the images have training originals. 4. The
four notebooks share their runs, and every planned run has its own key. 5. A text run and its masked LM read the same words.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from jepa_nb.data import recipes
from jepa_nb.errors import ConfigError
from jepa_nb.experiments import registry
from jepa_nb.experiments.paradox import jobs
from jepa_nb.experiments.paradox.config import ARMS, IMAGE_ORIGINALS, TIERS, members

NAMES = ("paradox/fig2_mi_and_rank", "paradox/fig3_loss_divergence", "paradox/fig4_irreducible_variance",
         "paradox/cosine_similarity")


def pairs(found) -> Counter:
    return Counter((member.arm, member.config.seed, member.config.modality) for member in found)


def test_arms_pair_both_modalities_by_seed():
    found = pairs(members("laptop", list(ARMS)))
    assert set(found.values()) == {1}
    asked = {(arm, seed, modality) for arm, seeds in (("scaled", 5), ("published", 3)) for seed in range(seeds)
             for modality in ("text", "image")}
    assert set(found) == asked | {(arm, seed, "text") for arm in ("single_pass", "few_documents") for seed in range(3)}


def test_given_seeds_replace_the_tiers_own_in_every_arm():
    found = pairs(members("smoke", ["scaled", "published"], seeds=[7, 3]))
    assert found == {(arm, seed, modality): 1 for arm in ("scaled", "published") for seed in (3, 7)
                     for modality in ("text", "image")}


def test_overrides_come_before_the_arms_rule():
    wide, narrow = (members("smoke", ["scaled"], seeds=[0], overrides={"width": width})[0].config for width in (64, 32))
    assert 2 * wide.lr_peak == pytest.approx(narrow.lr_peak)
    published = members("smoke", ["published"], seeds=[0], overrides={"lr_peak": 0.5})[0].config
    assert published.lr_peak == 0.5


@pytest.mark.parametrize("field", ["seed", "modality"])
def test_what_an_arm_sets_itself_is_not_overridden(field):
    """One seed for all, or one modality, would train the same run under several names."""
    with pytest.raises(ConfigError, match=f"'{field}'.* parameter 'seeds'"):
        members("smoke", ["scaled"], overrides={field: {"seed": 3, "modality": "text"}[field]})


def test_few_documents_are_as_many_as_the_images_have_training_originals():
    found = [recipes.load(name) for name in TIERS["laptop"].image.recipes]
    named = sum(entry["split"] == "train" for recipe in found for entry in recipe.read.get("originals", ()))
    sheets = sum(int(count) for recipe in found for count in re.findall(r"(\d+) for training", recipe.title))
    assert (named, sheets) == (21, 96)
    assert IMAGE_ORIGINALS == named + sheets
    few = members("laptop", ["few_documents"])
    assert {member.config.n_documents for member in few} == {IMAGE_ORIGINALS}


@pytest.mark.parametrize("tier", ["smoke", "laptop"])
def test_notebooks_share_their_runs_and_no_run_is_planned_twice(tier):
    plans = {name: registry.plan(name, tier) for name in NAMES}
    for planned in plans.values():
        assert len({run.key for run in planned}) == len(planned) == len({run.label for run in planned})
    every = {run.key: run.label for planned in plans.values() for run in planned}
    assert len(every) == len({run.label for planned in plans.values() for run in planned})
    headline = {run.key for run in plans[NAMES[0]]}
    assert all(headline <= {run.key for run in planned} for planned in plans.values())


def test_a_run_is_planned_after_what_it_builds_on():
    seen = set()
    for run in registry.plan(NAMES[1], "smoke"):
        assert set(run.needs) <= seen
        seen.add(run.key)


def test_the_masked_lm_reads_the_words_of_the_text_runs():
    changes = {"vocab_size": 300, "length": 20}
    found = jobs.jobs("smoke", ["scaled"], seeds=[0], overrides=changes)
    text = next(job for job in found if job.spec.config["modality"] == "text")
    (need,) = text.needs
    assert {name: need.spec.config[name] for name in changes} == changes
    assert need.spec.config["recipe"] == text.spec.config["recipes"][0]
    assert need.spec.config["source"] == text.spec.config["source"]
    assert need.spec.key in text.spec.needs


def test_a_key_follows_data_device_and_configuration():
    base, *others = (jobs.jobs("smoke", ["scaled"], seeds=[seed], overrides=changes)[0].spec.key for seed, changes in (
        (0, {}), (1, {}), (0, {"clip": 0.4}), (0, {"n_val": 65})))
    assert len({base, *others}) == 4
    assert jobs.jobs("smoke", ["scaled"], seeds=[0])[0].spec.key == base
