import pytest

from evaluation.expectations import AnswerExpectations, Grade, grade_answer, normalize_lines


def points(text, *must, must_not=(), longest=None, **others):
    refused, cites = others.get("refused", False), others.get("cites_expected", False)
    return grade_answer(
        text, refused=refused, expected=AnswerExpectations(must, must_not, longest), cites_expected=cites
    ).points


def test_all_that_is_expected_within_the_length_has_three_points():
    assert points("New parents get **12 weeks** of paid leave [1].", "12 weeks|twelve weeks", "paid", longest=60) == 3


@pytest.mark.parametrize(("longest", "expected"), [(12, 3), (11, 2), (4, 2), (3, 1), (None, 3)])
def test_a_complete_answer_loses_by_its_length(longest, expected):
    assert points("a 14 day run [12]", "14 day", longest=longest) == expected


def test_half_of_it_has_one_point_less_has_none():
    assert points("alpha", "alpha", "beta") == 1
    assert points("alpha", "alpha", "beta", "gamma") == 0
    assert points("alpha", "alpha", "beta", "gamma", cites_expected=True) == 1


def test_what_must_not_be_there_leaves_one_point():
    expected = AnswerExpectations(("12 weeks",), ("fewer than twelve",))
    assert grade_answer("12 weeks, with fewer than twelve employees 6", refused=False, expected=expected) == Grade(
        1, (), ("fewer than twelve",), 44, is_on_page=True
    )


def test_a_refusal_is_right_or_worth_nothing():
    assert grade_answer("No.", refused=True, expected=AnswerExpectations(refusal=True)).points == 3
    assert grade_answer("Yes.", refused=False, expected=AnswerExpectations(refusal=True)).points == 0
    near = grade_answer(
        "No.", refused=True, expected=AnswerExpectations(("14 days", "paid")), beside=["14 days", "It is paid."]
    )
    assert (near.points, near.is_on_page) == (1, True)
    refused = grade_answer("Perhaps.", refused=True, expected=AnswerExpectations(("14 days",)), cites_expected=True)
    assert (refused.points, refused.missing) == (0, ("14 days",))


@pytest.mark.parametrize(
    ("text", "must"),
    [
        ("The valves are closed.", "valve"),
        ("It’s 4,000 dollars", "4000"),
        ("4000 dollars", "4,000|4k"),
        ("a non‑stop flight", "non-stop"),
        ("Call `set_var` *now*", "set_var now"),
        ("at 14. Then", "14"),
        ("STRASSE", "straße"),
        ("It costs €14.50.", "€14.50"),
    ],
)
def test_what_is_held(text, must):
    assert points(text, must) == 3


@pytest.mark.parametrize(
    ("text", "must"),
    [
        ("inactive", "active"),
        ("in 2014", "14"),
        ("14.5 hours", "14"),
        ("3,14", "14"),
        ("140", "14"),
        ("v14", "14"),
        ("a", "|"),
    ],
)
def test_what_is_not(text, must):
    assert points(text, must, "other", "things") == 0


def test_lines_that_say_nothing_are_left_out():
    assert normalize_lines(["  a | b ", "", " \t", "c\nd"]) == ["a | b", "c d"]
