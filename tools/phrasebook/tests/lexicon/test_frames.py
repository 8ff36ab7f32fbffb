import pytest

from grammar.lexicon.frames import ACTIONS, GIFTS, SEQUELS, TENSES
from grammar.lexicon.nouns import NOUN
from grammar.lexicon.phrases import PLACES


@pytest.mark.parametrize("frame", ACTIONS + GIFTS, ids=lambda frame: frame.verb.base)
def test_every_frame_has_someone_a_tense_a_chinese_verb_and_known_places(frame):
    assert frame.subjects and frame.tenses <= set(TENSES.values()) and frame.chinese
    assert set(frame.places) <= set(PLACES)
    assert not set(frame.chinese) & set("-+~/|")


def test_frames_combine_verbs_with_plausible_nouns():
    for frame in ACTIONS + GIFTS:
        if frame.verb.base == "read":
            assert all("person" in noun.kinds for noun in frame.subjects)
            assert NOUN["bread"] not in frame.objects
        if frame.verb.base == "drink":
            assert all("drink" in noun.kinds for noun in frame.objects)


def test_chinese_verbs_depend_on_what_they_are_done_to():
    wear = [frame for frame in ACTIONS if frame.verb.base == "wear"]
    said = {frame.chinese for frame in wear if NOUN["hat"] in frame.objects}
    assert said == {"戴"}
    assert {frame.chinese for frame in wear if NOUN["coat"] in frame.objects} == {"穿"}


def test_the_marks_of_chinese_verbs_are_read():
    verbs = {frame.verb.base: frame for frame in ACTIONS}
    assert (verbs["dance"].chinese, verbs["dance"].chinese_object) == ("跳", "舞")
    assert verbs["live"].place_after_verb and not verbs["sit"].perfective
    assert verbs["wear"].durative == "~着" and verbs["sit"].durative == "~"
    assert verbs["eat"].perfective and verbs["eat"].durative == ""


def test_any_subject_allows_pronouns():
    verbs = {frame.verb.base: frame for frame in ACTIONS}
    assert verbs["help"].any_subject and verbs["help"].any_object
    assert not verbs["chase"].any_subject and not verbs["eat"].any_object


def test_sequel_frames_take_the_same_objects():
    for first, second in SEQUELS:
        assert first.objects == second.objects
        assert "past" in first.tenses
