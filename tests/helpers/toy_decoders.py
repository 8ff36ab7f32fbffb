"""Smallest models that a search accepts, and the log-probabilities of a forced output."""

import torch

from regard.data import BOS, EOS


class StatelessState:
    """Decoder state of a model that keeps nothing between steps."""

    def __init__(self, batch_size):
        self.batch_size = batch_size

    def reorder(self, beam_indices):
        return self

    def select(self, batch_indices, beam_indices):
        return StatelessState(len(batch_indices))


class MarkovModel:
    """Model whose next token depends on the last one alone: row = last token, column = next."""

    def __init__(self, logits):
        self.table = logits

    def step(self, tokens, state):
        return torch.eye(len(self.table))[tokens], state

    def logits(self, states):
        return states @ self.table


class ConstantModel:
    """Model with the same logits at every step."""

    def __init__(self, logits):
        self.constant = torch.tensor(logits)

    def step(self, tokens, state):
        return torch.zeros(*tokens.shape, 1), state

    def logits(self, states):
        return self.constant.expand(*states.shape[:-1], -1).clone()


@torch.no_grad()
def forced_log_probs(model, source, lengths, item, tokens):
    """Return the log-probabilities of tokens and EOS by one teacher-forced pass."""
    inputs = torch.tensor([[BOS, *tokens]])
    length = lengths[item : item + 1]
    states = model(source[item : item + 1, : int(length)], length, inputs)
    return _chosen(model, states, tokens)


@torch.no_grad()
def forced_text_log_probs(model, tokens):
    """Return the log-probabilities of tokens and EOS by a language model."""
    return _chosen(model, model(torch.tensor([[BOS, *tokens]])), tokens)


def _chosen(model, states, tokens):
    log_probs = model.logits(states)[0].log_softmax(-1)
    return [log_probs[i, token].item() for i, token in enumerate([*tokens, EOS])]
