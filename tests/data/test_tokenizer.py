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
# trained on little text, so that most text is unknown
TOKENIZERS = {kind: train_tokenizer(TEXTS, kind, 340) for kind in KINDS}

any_text = st.text(st.characters(), max_size=30)  # with lone surrogates
odd_text = st.lists(st.sampled_from(ODD) | st.text(max_size=3), max_size=6).map("".join)


def without_surrogates(text):
    return "".join("?" if "\ud800" <= letter <= "\udfff" else letter for letter in text)


@pytest.mark.parametrize("kind", KINDS)
@given(text=any_text | odd_text)
@example(text="".join(ODD))
@example(text="\ud83d\ude00 \udc00")
@example(text=" <end> <end>")
def test_any_text_round_trips_with_lone_surrogates_as_question_marks(kind, text):
    trained = TOKENIZERS[kind]
    assert trained.decode(trained.encode(text)) == without_surrogates(text)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(texts=st.lists(any_text | odd_text, max_size=5), text=odd_text)
def test_any_text_round_trips_whatever_the_training_text(kind, texts, text):
    trained = train_tokenizer(texts * 2, kind, 300)
    assert len(trained) <= 300
    assert trained.decode(trained.encode(text)) == without_surrogates(text)


@pytest.mark.parametrize("kind", KINDS)
@given(text=odd_text)
def test_no_text_is_encoded_as_a_special_token(kind, text):
    assert all(token >= FIRST_BYTE for token in TOKENIZERS[kind].encode(text))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["<0x41>", "<end>", "x<0x41>x", "<0x41><0x41>"])
def test_text_that_looks_like_a_byte_or_special_token_is_plain_text(kind, text):
    trained = train_tokenizer([text, f"a{text}"] * 9, kind, 300)
    tokens = trained.encode(text)
    assert trained.decode(tokens) == text
    assert ord("A") + FIRST_BYTE not in tokens
    assert not {"<0x41>", "<end>"} & set(trained.pieces) or kind == "words"


@pytest.mark.parametrize("kind", KINDS)
@given(text=any_text | odd_text)
@example(text="")
@example(text="\U0001f389 a")
def test_offsets_cover_the_text_in_order(kind, text):
    trained, text = TOKENIZERS[kind], without_surrogates(text)
    ids = trained.encode(text)
    # index of the character that each byte belongs to; the prefix space is at -1
    characters = [n for n, character in enumerate(text) for _ in character.encode()]
    position = -1
    for token, (start, end) in zip(ids, trained.offsets(ids), strict=True):
        size = 1 if token < FIRST_PIECE else len(trained.pieces[token - FIRST_PIECE].encode())
        covered = characters[max(position, 0) : position + size]
        assert (start, end) == ((covered[0], covered[-1] + 1) if covered else (start, start))
        if token >= FIRST_PIECE:
            shown = trained.convert_ids_to_tokens([token])[0]
            assert text[start:end] == (shown[1:] if position == -1 else shown)
        position += size
    assert position == len(characters) or not text


@pytest.mark.parametrize("kind", KINDS)
@given(texts=st.lists(odd_text, max_size=4))
def test_batch_is_encoded_as_single_texts_are(kind, texts):
    trained = TOKENIZERS[kind]
    assert trained.encode_batch(texts) == [trained.encode(text) for text in texts]


@pytest.mark.parametrize("kind", KINDS)
def test_empty_text_has_no_tokens(kind):
    assert TOKENIZERS[kind].encode("") == []
    assert TOKENIZERS[kind].decode([]) == ""
    assert TOKENIZERS[kind].offsets([]) == ()


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_any_ids_can_be_decoded(kind, data):
    trained = TOKENIZERS[kind]
    tokens = data.draw(st.lists(st.integers(0, len(trained) - 1)))
    assert isinstance(trained.decode(tokens), str)
    assert len(trained.convert_ids_to_tokens(tokens)) == len(tokens)


def test_special_tokens_have_names_and_decode_to_nothing():
    trained = TOKENIZERS["bpe"]
    tokens = [BOS, *trained.encode("the cat"), EOS, PAD, UNK]
    assert trained.decode(tokens) == "the cat"
    assert trained.convert_ids_to_tokens([PAD, BOS, EOS, UNK]) == [
        "<padding>",
        "<start>",
        "<end>",
        "<unknown>",
    ]


def test_incomplete_character_decodes_to_the_repositionment_character():
    trained = train_tokenizer(["abc"], "characters", 300)
    assert trained.decode(trained.encode("é")[:-1]) == "\ufffd"
    assert trained.convert_ids_to_tokens(trained.encode("é")) == [" ", "<0xC3>", "<0xA9>"]


def test_character_tokenizer_has_one_token_per_character():
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
def test_word_spans_cover_all_but_spaces(text):
    words = TOKENIZERS["bpe"].word_spans(text)
    assert words == TOKENIZERS["bpe"].word_spans(without_surrogates(text))
    covered_text = "".join(text[slice(*word)] for word in words)
    assert " " not in covered_text
    # Python counts the separators of information as spaces, too; here they are characters
    assert "".join(covered_text.split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("L'homme n'aime pas qu'il l’ait.", "L' homme n' aime pas qu' il l’ ait ."),
        ("Don't! The cat's here, I'm sure.", "Don't ! The cat's here , I'm sure ."),
        ("aujourd'hui, we'll sing", "aujourd'hui , we'll sing"),
        ("'the dogs' bones'", "' the dogs ' bones '"),
        ("rock'n'roll l'1 l' « a »", "rock' n' roll l ' 1 l ' « a »"),
        ("'", "'"),
    ],
)
def test_apostrophe_within_a_word_ends_the_word_before_it(text, words):
    spans = TOKENIZERS["bpe"].word_spans(text)
    assert " ".join(text[start:end] for start, end in spans) == words


def test_unknown_word_is_spelled_in_characters():
    trained = train_tokenizer(["the cat sat", "the cat"], "words", 400)
    assert trained.convert_ids_to_tokens(trained.encode("the cat")) == [" the", " cat"]
    assert trained.convert_ids_to_tokens(trained.encode("the cast")) == [
        " the",
        " ",
        "c",
        "a",
        "s",
        "t",
    ]


def test_frequent_word_is_one_bpe_piece_at_the_start_too():
    trained = train_tokenizer(["tea and more tea"] * 5, "bpe", 300)
    first, _, _, last = trained.encode("tea and more tea")
    assert first == last
    assert trained.convert_ids_to_tokens([first]) == [" tea"]


def test_bpe_pieces_are_readable_in_any_script():
    trained = train_tokenizer(["我喜欢茶", "我喜欢你", "мир миру мир"] * 3, "bpe", 400)
    shown = trained.convert_ids_to_tokens(trained.encode("我喜欢мир"))
    assert "".join(shown) == " 我喜欢мир"
    assert all("<0x" not in piece for piece in shown)


def test_digits_are_single_tokens():
    trained = train_tokenizer(["in 1999 and 1999 and 1999"] * 5, "bpe", 400)
    assert trained.convert_ids_to_tokens(trained.encode("1999")) == [" 1", "9", "9", "9"]


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_saved_tokenizers_are_loaded(tmp_path, kind, joint):
    source = TOKENIZERS[kind]
    both = Tokenizers(source, source if joint else train_tokenizer(["another one"] * 3, kind, 270))
    both.save(tmp_path / "tokenizer.json")
    back = Tokenizers.load(tmp_path / "tokenizer.json")
    assert (back.source is back.target) == joint
    assert back.vocab_sizes == both.vocab_sizes
    for one, other in zip(back, both, strict=True):
        assert one.to_dict() == other.to_dict()
        assert one.encode_batch(TEXTS) == other.encode_batch(TEXTS)


def test_saved_file_is_readable_json(tmp_path):
    trained = train_tokenizer(["我喜欢茶"], "bpe", 300)
    Tokenizers(trained, trained).save(tmp_path / "tokenizer.json")
    text = (tmp_path / "tokenizer.json").read_text(encoding="utf-8")
    assert "我" in text
    assert json.loads(text)["both"]["version"] == tokenizer.FORMAT_VERSION


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "whole.json"
    Tokenizers(TOKENIZERS["bpe"], TOKENIZERS["words"]).save(path)
    return path


@given(position=st.floats(0, 1))
def test_truncated_file_is_refused(saved, position):
    data = saved.read_bytes()
    cut = saved.with_name("cut.json")
    cut.write_bytes(data[: int(position * (len(data) - 1))])
    with pytest.raises(RegardError, match=r"^\S*cut.json is not a tokenizer file of regard, or is"):
        Tokenizers.load(cut)


@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_file_with_one_flipped_bit_is_refused_by_name(saved, position, bit):
    data = bytearray(saved.read_bytes())
    data[int(position * len(data))] ^= 1 << bit
    flipped = saved.with_name("flipped.json")
    flipped.write_bytes(data)
    with pytest.raises(RegardError, match=r"^\S*flipped.json"):
        Tokenizers.load(flipped)


def test_tokenizers_of_another_run_are_refused(saved, tmp_path):
    path = tmp_path / "named.json"
    Tokenizers.load(saved).save(path, "7f")
    assert Tokenizers.load(path, "7f").digest == Tokenizers.load(saved, "7f").digest
    with pytest.raises(RegardError, match=r"named.json must be of run 80, but it is of run 7f"):
        Tokenizers.load(path, "80")


def test_altered_file_is_refused_by_its_checksum(saved):
    content = json.loads(saved.read_text("utf-8"))
    content["target"]["pieces"][:2] = content["target"]["pieces"][1::-1]  # still a tokenizer
    altered = saved.with_name("altered.json")
    altered.write_text(json.dumps(content), "utf-8")
    with pytest.raises(RegardError, match="altered.json is not a tokenizer file of regard, or is"):
        Tokenizers.load(altered)
    del content["checksum"]
    altered.write_text(json.dumps(content), "utf-8")
    with pytest.raises(RegardError, match="altered.json is not a tokenizer file of regard, or is"):
        Tokenizers.load(altered)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "3",
        "{}",
        '{"both": 3}',
        '{"both": {"version": 2}}',
        '{"both": {"version": 2, "kind": "bpe", "pieces": 3, "merges": []}}',
        '{"both": {"version": 2, "kind": "bpe", "pieces": ["a"], "merges": [["a"]]}}',
        '{"source": {"version": 2, "kind": "bpe", "pieces": ["a"], "merges": []}}',
    ],
)
def test_other_json_is_refused(tmp_path, unchecked, content):
    (tmp_path / "some.json").write_text(content)
    with pytest.raises(
        RegardError, match="some.json is not a tokenizer file of regard, or is damaged"
    ):
        Tokenizers.load(tmp_path / "some.json")


def test_other_format_version_is_refused(tmp_path):
    (tmp_path / "some.json").write_text('{"both": {"version": 1}, "checksum": "12"}')
    with pytest.raises(RegardError, match="some.json .* must have format version 2, but it has 1"):
        Tokenizers.load(tmp_path / "some.json")


def test_missing_file_is_reported_in_one_line(tmp_path):
    with pytest.raises(RegardError, match="cannot read the tokenizer .*some.json: No such file"):
        Tokenizers.load(tmp_path / "some.json")


def test_tokenizer_without_pieces_falls_back_to_bytes():
    assert Tokenizer("words", ()).convert_ids_to_tokens(Tokenizer("words", ()).encode("é")) == [
        "<0x20>",
        "<0xC3>",
        "<0xA9>",
    ]


@pytest.mark.parametrize("token", [-1, -100, 262])
def test_id_that_is_not_of_the_vocabulary_is_refused(token):
    tokenizer = Tokenizer("words", [" the", " cat"])
    message = f"ids must be token ids from 0 to 261, but one is {token}"
    for function in (tokenizer.decode, tokenizer.to_bytes, tokenizer.convert_ids_to_tokens):
        with pytest.raises(RegardError, match=message):
            function([260, token])


def test_repr_shows_kind_and_size():
    assert repr(Tokenizer("words", [" the", " cat"])) == "<Tokenizer of words: 262 tokens>"
