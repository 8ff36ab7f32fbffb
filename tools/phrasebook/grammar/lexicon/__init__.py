"""The words of the phrasebook in three languages, and what each may stand with."""
