"""Text to tokens: corpora, tokenizers, and the embedded phrasebook."""
