"""Paper A, The JEPA Paradox in Language: configurations, training with diagnostics, tables, figures, measurements."""
