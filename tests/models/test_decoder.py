import pytest
import torch

from regard.attention import MultiHeadAttention
from regard.attention.beam_cache import MIN_PRUNED_KEYS
from regard.models import Decoder, FeedForward, Layer

SENTENCES, BEAMS, LENGTH, WIDTH = 2, 3, 4, 12


def make():
    def layer():
        return Layer(
            MultiHeadAttention(WIDTH, 3), FeedForward(WIDTH, 20), MultiHeadAttention(WIDTH, 3)
        )

    return Decoder([layer(), layer()]).eval()


def read(decoder):
    keep = torch.arange(5) < torch.tensor([[5], [3]])
    return decoder.read(torch.randn(SENTENCES, 5, WIDTH), keep)


def continued(decoder, past, rows):
    """Take a step for each of the rows (sentence, beam, position, width)."""
    states = []
    for position in range(rows.shape[2]):
        state, past = decoder.step(rows[:, :, position], past)
        states.append(state)
    return torch.stack(states, dim=2), past


def test_continuations_of_one_sentence_share_its_source_and_nothing_else():
    decoder = make()
    source = read(decoder)
    rows = torch.randn(SENTENCES, BEAMS, LENGTH, WIDTH)
    states, _ = continued(decoder, decoder.start(source), rows)
    for beam in range(BEAMS):
        torch.testing.assert_close(states[:, beam], decoder(rows[:, beam], source))


def test_a_continuation_goes_on_from_the_past_it_is_given():
    decoder = make()
    source = read(decoder)
    rows = torch.randn(SENTENCES, BEAMS, LENGTH, WIDTH)
    _, past = continued(decoder, decoder.start(source), rows)
    next_row = torch.randn(SENTENCES, BEAMS, WIDTH)
    parents = torch.tensor([2, 2, 0, 4, 3, 3])  # counted over both sentences
    states, _ = decoder.step(next_row, past.reorder(parents))
    texts = rows.flatten(0, 1)[parents].unflatten(0, (SENTENCES, BEAMS))
    texts = torch.cat([texts, next_row[:, :, None]], dim=2)
    for beam in range(BEAMS):
        expected = decoder(texts[:, beam], source)[:, -1]
        torch.testing.assert_close(states[:, beam], expected)


def test_sentences_that_leave_take_their_source_with_them():
    decoder = make()
    source = read(decoder)
    rows = torch.randn(SENTENCES, BEAMS, LENGTH, WIDTH)
    _, past = continued(decoder, decoder.start(source), rows)
    next_row = torch.randn(1, BEAMS, WIDTH)
    kept = past.keep(torch.tensor([1]), torch.tensor([3, 4, 5]))
    states, _ = decoder.step(next_row, kept)
    texts = torch.cat([rows[1:], next_row[:, :, None]], dim=2)
    for beam in range(BEAMS):
        expected = decoder(texts[:, beam], source.pick(torch.tensor([1])))[:, -1]
        torch.testing.assert_close(states[:, beam], expected)


def test_a_search_reads_each_heads_memory_row_by_row():
    decoder = make()
    source = read(decoder)
    laid_out = decoder.start(source).source
    for memory, before in zip(laid_out.memories, source.memories, strict=True):
        assert memory.keys.is_contiguous() and memory.values.is_contiguous()
        assert torch.equal(memory.keys, before.keys) and torch.equal(memory.values, before.values)


def test_steps_are_counted_and_parting_does_not_count():
    decoder = make()
    past = decoder.start(read(decoder))
    assert past.steps == 0
    _, past = continued(decoder, past, torch.randn(SENTENCES, 1, 2, WIDTH))
    parted = past.reorder(torch.tensor([0, 0, 0, 1, 1, 1]))
    assert past.steps == parted.steps == 2


def test_keys_of_continuations_that_were_given_up_are_forgotten():
    decoder, steps = make(), 40
    source = read(decoder)
    first = torch.tensor([0, 0, 0, 3, 3, 3])  # all go on from the first of their sentence
    rows = torch.randn(SENTENCES, BEAMS, steps, WIDTH)
    past = decoder.start(source)
    for position in range(steps):
        states, past = decoder.step(rows[:, :, position], past)
        last, past = past, past.reorder(first)
        assert all(len(cache) < 3 * steps / 4 + 2 * MIN_PRUNED_KEYS for cache in past.caches)
    assert last.steps == steps
    for beam in range(BEAMS):
        text = torch.cat([rows[:, 0, :-1], rows[:, beam, -1:]], dim=1)
        torch.testing.assert_close(states[:, beam], decoder(text, source)[:, -1])


def test_sentences_that_leave_take_the_keys_along_that_no_one_sees():
    decoder = make()
    source = read(decoder)
    rows = torch.randn(SENTENCES, BEAMS, LENGTH, WIDTH)
    _, past = continued(decoder, decoder.start(source), rows)
    kept = past.keep(torch.tensor([1]), torch.tensor([4, 4, 4]))
    assert [len(cache) for cache in kept.caches] == [LENGTH, LENGTH]
    next_row = torch.randn(1, BEAMS, WIDTH)
    states, _ = decoder.step(next_row, kept)
    for beam in range(BEAMS):
        text = torch.cat([rows[1:, 1], next_row[:, beam, None]], dim=1)
        expected = decoder(text, source.pick(torch.tensor([1])))[:, -1]
        torch.testing.assert_close(states[:, beam], expected)


@pytest.mark.parametrize("looking", [(True, False), (False, True, False)])
def test_some_layers_may_look_at_the_source_and_others_not(looking):
    layers = [
        Layer(
            MultiHeadAttention(8, 2), FeedForward(8, 12), MultiHeadAttention(8, 2) if look else None
        )
        for look in looking
    ]
    decoder = Decoder(layers).eval()
    source = decoder.read(torch.randn(2, 5, 8), torch.ones(2, 5, dtype=torch.bool))
    rows, past, stepped = torch.randn(2, 4, 8), decoder.start(source), []
    for row in rows.split(1, dim=1):
        states, past = decoder.step(row, past)
        stepped.append(states)
    torch.testing.assert_close(torch.cat(stepped, dim=1), decoder(rows, source))
