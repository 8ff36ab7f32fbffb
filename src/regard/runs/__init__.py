"""Run folders: settings, tokenizer, parameters, checkpoints, and a loaded run."""
