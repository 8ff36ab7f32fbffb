"""The words of the phrasebook in three languages, and which of them go together."""
