"""Paper C, LLM-JEPA: configurations, fine-tuning with evaluation along it, tables, figures, measurements."""
