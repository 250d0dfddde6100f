"""Encoders, predictors and the two JEPAs, built from timm's ViT blocks and transformers' BERT; no attention is written here."""
