import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.data import BOS, EOS, PAD, UNK, Tokenizer, Tokenizers, tokenizer, train_tokenizer
from regard.data.tokenizer import FIRST_BYTE, FIRST_PIECE
from regard.errors import RegardError

KINDS = ("bpe", "words", "characters")
ODD = [
    "<0x41>",
    "<end>",
    "<padding>",
    "\0",
    "\u2581",
    "Ġ",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "שלום עולם",
    "漢字かな交じり",
    "e\u0301",
    "\u2028",
    "\r\n",
    " ",
    "  ",
    "\u00a0",
    "\ufeff",
    "\t",
    "?",
    "123",
    "aujourd'hui",
]
TEXTS = ["the cat sat on the mat", "le chat est assis sur le tapis", "我喜欢喝茶", *ODD] * 3
# learned on little, they meet much that they do not know
TOKENIZERS = {kind: train_tokenizer(TEXTS, kind, 340) for kind in KINDS}

any_text = st.text(st.characters(), max_size=30)  # halves of surrogate pairs among them
odd_text = st.lists(st.sampled_from(ODD) | st.text(max_size=3), max_size=6).map("".join)


def written(text):
    return "".join("?" if "\ud800" <= letter <= "\udfff" else letter for letter in text)


@pytest.mark.parametrize("kind", KINDS)
@given(text=any_text | odd_text)
@example(text="".join(ODD))
@example(text="\ud83d\ude00 \udc00")
@example(text=" <end> <end>")
def test_any_text_comes_back_as_it_was_and_half_a_surrogate_as_a_question_mark(kind, text):
    learned = TOKENIZERS[kind]
    assert learned.decode(learned.encode(text)) == written(text)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(texts=st.lists(any_text | odd_text, max_size=5), text=odd_text)
def test_whatever_was_learned_any_text_comes_back(kind, texts, text):
    learned = train_tokenizer(texts * 2, kind, 300)
    assert len(learned) <= 300
    assert learned.decode(learned.encode(text)) == written(text)


@pytest.mark.parametrize("kind", KINDS)
@given(text=odd_text)
def test_no_text_is_taken_for_a_special_token(kind, text):
    assert all(token >= FIRST_BYTE for token in TOKENIZERS[kind].encode(text))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["<0x41>", "<end>", "x<0x41>x", "<0x41><0x41>"])
def test_text_that_looks_like_a_token_is_spelled_letter_by_letter_or_learned(kind, text):
    learned = train_tokenizer([text, f"a{text}"] * 9, kind, 300)
    tokens = learned.encode(text)
    assert learned.decode(tokens) == text
    assert ord("A") + FIRST_BYTE not in tokens
    assert not {"<0x41>", "<end>"} & set(learned.pieces) or kind == "words"


@pytest.mark.parametrize("kind", KINDS)
@given(text=any_text | odd_text)
@example(text="")
@example(text="\U0001f389 a")
def test_located_tokens_cover_the_text_in_order(kind, text):
    learned, text = TOKENIZERS[kind], written(text)
    ids = learned.encode(text)
    # for each byte of the text, one space before it, the number of its letter
    letters = [n for n, letter in enumerate(text) for _ in letter.encode()]
    place = -1
    for token, (start, end) in zip(ids, learned.offsets(ids), strict=True):
        size = 1 if token < FIRST_PIECE else len(learned.pieces[token - FIRST_PIECE].encode())
        covered = letters[max(place, 0) : place + size]
        assert (start, end) == ((covered[0], covered[-1] + 1) if covered else (start, start))
        if token >= FIRST_PIECE:
            shown = learned.convert_ids_to_tokens([token])[0]
            assert text[start:end] == (shown[1:] if place == -1 else shown)
        place += size
    assert place == len(letters) or not text


@pytest.mark.parametrize("kind", KINDS)
@given(texts=st.lists(odd_text, max_size=4))
def test_many_texts_are_encoded_as_one_by_one(kind, texts):
    learned = TOKENIZERS[kind]
    assert learned.encode_batch(texts) == [learned.encode(text) for text in texts]


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_text_has_no_tokens(kind):
    assert TOKENIZERS[kind].encode("") == []
    assert TOKENIZERS[kind].decode([]) == ""
    assert TOKENIZERS[kind].offsets([]) == ()


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_any_tokens_can_be_read(kind, data):
    learned = TOKENIZERS[kind]
    tokens = data.draw(st.lists(st.integers(0, len(learned) - 1)))
    assert isinstance(learned.decode(tokens), str)
    assert len(learned.convert_ids_to_tokens(tokens)) == len(tokens)


def test_special_tokens_have_names_and_say_nothing():
    learned = TOKENIZERS["bpe"]
    tokens = [BOS, *learned.encode("the cat"), EOS, PAD, UNK]
    assert learned.decode(tokens) == "the cat"
    assert learned.convert_ids_to_tokens([PAD, BOS, EOS, UNK]) == [
        "<padding>",
        "<start>",
        "<end>",
        "<unknown>",
    ]


def test_a_letter_cut_in_half_is_shown_as_such():
    learned = train_tokenizer(["abc"], "characters", 300)
    assert learned.decode(learned.encode("é")[:-1]) == "\ufffd"
    assert learned.convert_ids_to_tokens(learned.encode("é")) == [" ", "<0xC3>", "<0xA9>"]


def test_characters_are_one_token_each():
    assert TOKENIZERS["characters"].convert_ids_to_tokens(
        TOKENIZERS["characters"].encode("a 我")
    ) == [
        " ",
        "a",
        " ",
        "我",
    ]


@given(any_text)
@example("un caf\udce9 noir")
def test_the_words_of_any_text_are_found_where_they_stand(text):
    words = TOKENIZERS["bpe"].word_spans(text)
    assert words == TOKENIZERS["bpe"].word_spans(written(text))
    found = "".join(text[slice(*word)] for word in words)
    assert " " not in found
    # Python counts the separators of information as spaces, too; here they are characters
    assert "".join(found.split()) == "".join(text.split())


def test_words_that_are_known_are_whole_and_others_spelled():
    learned = train_tokenizer(["the cat sat", "the cat"], "words", 400)
    assert learned.convert_ids_to_tokens(learned.encode("the cat")) == [" the", " cat"]
    assert learned.convert_ids_to_tokens(learned.encode("the cast")) == [
        " the",
        " ",
        "c",
        "a",
        "s",
        "t",
    ]


def test_common_words_are_one_piece_of_bpe_wherever_they_stand():
    learned = train_tokenizer(["tea and more tea"] * 5, "bpe", 300)
    first, _, _, last = learned.encode("tea and more tea")
    assert first == last
    assert learned.convert_ids_to_tokens([first]) == [" tea"]


def test_pieces_can_be_read_in_any_script():
    learned = train_tokenizer(["我喜欢茶", "我喜欢你", "мир миру мир"] * 3, "bpe", 400)
    shown = learned.convert_ids_to_tokens(learned.encode("我喜欢мир"))
    assert "".join(shown) == " 我喜欢мир"
    assert all("<0x" not in piece for piece in shown)


def test_digits_stay_alone():
    learned = train_tokenizer(["in 1999 and 1999 and 1999"] * 5, "bpe", 400)
    assert learned.convert_ids_to_tokens(learned.encode("1999")) == [" 1", "9", "9", "9"]


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_saved_is_loaded(tmp_path, kind, joint):
    source = TOKENIZERS[kind]
    both = Tokenizers(source, source if joint else train_tokenizer(["another one"] * 3, kind, 270))
    both.save(tmp_path / "tokenizer.json")
    back = Tokenizers.load(tmp_path / "tokenizer.json")
    assert (back.source is back.target) == joint
    assert back.vocab_sizes == both.vocab_sizes
    for one, other in zip(back, both, strict=True):
        assert one.to_dict() == other.to_dict()
        assert one.encode_batch(TEXTS) == other.encode_batch(TEXTS)


def test_a_file_can_be_read_by_people(tmp_path):
    learned = train_tokenizer(["我喜欢茶"], "bpe", 300)
    Tokenizers(learned, learned).save(tmp_path / "tokenizer.json")
    text = (tmp_path / "tokenizer.json").read_text(encoding="utf-8")
    assert "我" in text
    assert json.loads(text)["both"]["version"] == tokenizer.FORMAT_VERSION


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "whole.json"
    Tokenizers(TOKENIZERS["bpe"], TOKENIZERS["words"]).save(path)
    return path


@given(place=st.floats(0, 1))
def test_a_file_that_was_cut_is_refused(saved, place):
    data = saved.read_bytes()
    cut = saved.with_name("cut.json")
    cut.write_bytes(data[: int(place * (len(data) - 2))])
    with pytest.raises(RegardError, match=r"^\S*cut.json is not a tokenizer of regard, or was dam"):
        Tokenizers.load(cut)


def test_a_file_that_was_altered_is_refused(saved):
    content = json.loads(saved.read_text("utf-8"))
    content["target"]["pieces"][:2] = content["target"]["pieces"][1::-1]  # still a tokenizer
    altered = saved.with_name("altered.json")
    altered.write_text(json.dumps(content), "utf-8")
    with pytest.raises(RegardError, match="altered.json is not a tokenizer of regard, or was dam"):
        Tokenizers.load(altered)
    del content["checksum"]  # as files were before
    altered.write_text(json.dumps(content), "utf-8")
    assert Tokenizers.load(altered).vocab_sizes == Tokenizers.load(saved).vocab_sizes


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "3",
        "{}",
        '{"both": 3}',
        '{"both": {"version": 1}}',
        '{"both": {"version": 1, "kind": "bpe", "pieces": 3, "merges": []}}',
        '{"both": {"version": 1, "kind": "bpe", "pieces": ["a"], "merges": [["a"]]}}',
        '{"source": {"version": 1, "kind": "bpe", "pieces": ["a"], "merges": []}}',
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, unchecked, content):
    (tmp_path / "some.json").write_text(content)
    with pytest.raises(RegardError, match="some.json is not a tokenizer of regard, or was damaged"):
        Tokenizers.load(tmp_path / "some.json")


def test_another_version_is_named(tmp_path):
    (tmp_path / "some.json").write_text('{"both": {"version": 2}}')
    with pytest.raises(RegardError, match="a tokenizer of version 1 is wanted, not 2"):
        Tokenizers.load(tmp_path / "some.json")


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(RegardError, match="cannot read the tokenizer .*some.json: No such file"):
        Tokenizers.load(tmp_path / "some.json")


def test_a_tokenizer_without_pieces_spells_in_bytes():
    assert Tokenizer("words", ()).convert_ids_to_tokens(Tokenizer("words", ()).encode("é")) == [
        "<0x20>",
        "<0xC3>",
        "<0xA9>",
    ]
