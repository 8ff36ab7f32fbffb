"""Encoded data of the tiny corpus."""

import pytest

from helpers.tiny_corpus import TINY, tiny_corpus
from regard.config import RunConfig
from regard.runs import RunFolder
from regard.training.preparation import open_data, prepare_data


@pytest.fixture
def make_data(tmp_path):
    """Return a function that prepares the tiny corpus with some settings changed."""

    def make(updates=None, corpus=None, valid=None, folder=None):
        config = RunConfig.from_dict(TINY).update(updates or {})
        corpus = corpus or tiny_corpus()
        folder = RunFolder(folder or tmp_path / "run")
        prepare_data(folder, config, corpus, valid, sum(1 for _ in corpus.read()))
        return open_data(folder, config)

    return make
