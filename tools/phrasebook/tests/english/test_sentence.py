import pytest

from grammar.english.sentence import proposition, sentence, state
from grammar.meaning import Existence


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({}, "You are tired ."),
        ({"negated": True}, "You are not tired ."),
        ({"question": "whether"}, "Are you tired ?"),
        ({"past": True, "degree": "too"}, "You were too tired ."),
    ],
)
def test_state_is_rendered_negated_and_as_a_question(m, form, said):
    words = sentence(m.being(m.who("you"), "tired", **form))
    assert " ".join(word.text for word in words) == said


def test_one_word_comparative_is_aligned_with_degree_and_adjective(m):
    words = state(m.being(m.name("Paul"), "tall", than=m.name("Anna")))
    assert words[2].text == "taller"
    assert words[2].marks == ("degree", "predicate")


def test_there_is_inverts_in_a_question(m):
    meaning = Existence(m.thing("cat", "a"), m.at("under", m.thing("bed")), question="whether")
    assert " ".join(word.text for word in proposition(meaning)) == "is there a cat under the bed"


def test_two_propositions_have_separate_marks(m):
    words = sentence(m.report(m.who("I"), "think", m.being(m.who("she"), "sad")))
    assert words[0].marks == ("subject.noun",)
    assert words[3].marks == ("2.subject.noun",)
