"""What a reader may change, and what a wrong change is told.

1. Unknown tiers, fields, arms, claims and notebooks are answered with the nearest valid name. 2. A value of another type is
refused with the present value. 3. Text where a dict belongs says ``-y``. 4. Numbers and lists that YAML or JSON give are taken
as the field's own type. 5. Equal values have equal fingerprints.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from jepa_nb import config, ledger
from jepa_nb.errors import ConfigError, UnknownName
from jepa_nb.experiments import registry
from jepa_nb.experiments.paradox.config import SMOKE_TEXT, TIERS, Diagnostics, members

NOTEBOOK = "paradox/fig2_mi_and_rank"


@pytest.mark.parametrize(("call", "nearest"), [
    (lambda: config.resolve_tier("labtop"), "laptop"),
    (lambda: config.override(SMOKE_TEXT, {"lr_peek": 1e-3}), "lr_peak"),
    (lambda: members("smoke", ["scalled"]), "scaled"),
    (lambda: members("smoke", ["scaled"], overrides={"epoch": 3}), "epochs"),
    (lambda: ledger.claim("A.rank_text_fals"), "A.rank_text_falls"),
    (lambda: registry.plan("paradox/fig2_mi_and_rnk", "smoke"), NOTEBOOK),
    (lambda: registry.plan(NOTEBOOK, "smke"), "smoke"),
    (lambda: registry.select("paradox/cosine_similarty"), "paradox/cosine_similarity"),
    (lambda: registry.context("paradox/fig3_loss_divergense"), "paradox/fig3_loss_divergence"),
    (lambda: registry.context(NOTEBOOK, device="gpu"), "cpu"),
    (lambda: registry.context(NOTEBOOK, source="hab"), "hub")])
def test_an_unknown_name_is_answered_with_the_nearest(call, nearest):
    with pytest.raises(UnknownName) as fault:
        call()
    assert fault.value.nearest == nearest
    assert f"did you mean '{nearest}'?" in str(fault.value)


def test_a_run_key_that_no_notebook_plans_is_refused():
    with pytest.raises(UnknownName, match="run of tier 'smoke'"):
        registry.run(["0123456789abcdef"], "smoke")


@pytest.mark.parametrize(("changes", "told"), [
    ({"epochs": "3"}, "'epochs' takes int .now 2., got str '3'"),
    ({"epochs": 3.0}, "'epochs' takes int"),
    ({"epochs": True}, "'epochs' takes int .* got bool True"),
    ({"lr_peak": "1e-3"}, "'lr_peak' takes float .* YAML reads 1e-3 as text; write 1.0e-3"),
    ({"single_pass": 1}, "'single_pass' takes bool"),
    ({"recipes": "imdb"}, "'recipes' takes tuple"),
    ({"latent_loss": 1}, "'latent_loss' takes str")])
def test_a_value_of_another_type_is_refused(changes, told):
    with pytest.raises(ConfigError, match=told):
        config.override(SMOKE_TEXT, changes)


@pytest.mark.parametrize("given", ['{"epochs": 3}', ["epochs"], 3])
def test_overrides_that_are_no_dict_say_how_to_pass_one(given):
    with pytest.raises(ConfigError, match="must be a dict.* -y"):
        config.override(SMOKE_TEXT, given)
    with pytest.raises(ConfigError, match="'overrides' must be a dict.* -y"):
        registry.context(NOTEBOOK, tier="smoke", overrides=given)


def test_seeds_that_are_no_list_say_how_to_pass_one():
    with pytest.raises(ConfigError, match="'seeds' must be a list.* -y"):
        registry.context(NOTEBOOK, tier="smoke", seeds="[0, 1]")


def test_seeds_that_are_no_numbers_are_refused():
    with pytest.raises(ConfigError, match="seeds"):
        registry.context(NOTEBOOK, tier="smoke", seeds=["first"])


def test_values_become_the_fields_own_type():
    changed = config.override(SMOKE_TEXT, {"lr_peak": 1, "n_spans": [2, 3], "single_pass": True, "recipes": ["imdb"]})
    assert changed == replace(SMOKE_TEXT, lr_peak=1.0, n_spans=(2, 3), single_pass=True, recipes=("imdb",))
    assert type(changed.lr_peak) is float
    assert config.fingerprint(changed) == config.fingerprint(config.override(SMOKE_TEXT, {
        "recipes": ("imdb",), "single_pass": True, "n_spans": (2, 3), "lr_peak": 1.0}))


def test_the_original_is_left_alone_and_no_change_is_no_change():
    assert config.override(SMOKE_TEXT, {}) == SMOKE_TEXT == TIERS["smoke"].text


def test_the_default_tier_comes_from_the_environment(monkeypatch):
    for value, tier in (("gpu", "gpu"), ("", "laptop")):
        monkeypatch.setenv("JEPA_NB_TIER", value)
        assert config.resolve_tier("default") == tier
    monkeypatch.setenv("JEPA_NB_TIER", "smokey")
    with pytest.raises(UnknownName, match="did you mean 'smoke'"):
        config.resolve_tier()


def test_every_field_changes_the_fingerprint():
    base = Diagnostics(modality="text")
    other = {str: "x", int: 7919, float: 0.123, bool: True, tuple: (9,)}
    changed = {name: replace(base, **{name: other[type(value)]}) for name, value in vars(base).items()}
    assert len({config.fingerprint(value) for value in (base, *changed.values())}) == len(changed) + 1


def test_canonical_json_refuses_what_json_cannot_say():
    with pytest.raises(ValueError, match="JSON compliant"):
        config.canonical_json({"lr": float("nan")})
    assert config.canonical_json({"b": 1, "a": (1, 2)}) == '{"a":[1,2],"b":1}'
