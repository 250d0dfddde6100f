"""Which tokens and patches are hidden: spans of text tokens, blocks of image patches."""
