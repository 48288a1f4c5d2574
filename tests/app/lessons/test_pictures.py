"""The covered pictures on the page Learn: one of each lesson, and of each step of the plan for a
class, out of its model, without the answer."""

import pytest

from headlight.app.lessons import covered
from headlight.app.lessons.class_plan import plan
from headlight.app.lessons.lesson import load_folder
from tests.covered_pictures import pictures as drawn


def test_every_shipped_lesson_has_a_question_and_a_picture():
    lessons = load_folder()[0]
    assert {lesson.name for lesson in lessons} == covered.of_lessons().keys()
    assert all(lesson.question != lesson.title for lesson in lessons)


def test_every_step_of_the_plan_has_a_picture_but_the_last_which_is_the_class_s_own():
    shown = covered.of_plan()
    assert len(shown) == len(plan().steps)
    assert None not in shown[:-1]
    first = next(slide.cover for slide in plan().slides if slide.cover is not None)
    assert shown[0]["covered"] == first


def test_what_is_covered_is_not_in_the_picture():
    for picture in [*covered.of_lessons().values(), *covered.of_plan()[:-1]]:
        hidden = picture.get("covered")
        if picture["kind"] == "map" and hidden != "future":
            assert [row for row, cells in enumerate(picture["cells"]) if not cells] == (
                [] if hidden is None else [hidden]
            )
        elif picture["kind"] == "map":
            assert all(
                share is None for i, row in enumerate(picture["cells"]) for share in row[i + 1 :]
            )
        elif picture["kind"] == "lines":
            assert hidden not in {target for _, target in picture["links"]}
        else:
            assert hidden or None in dict(picture["bars"]).values()


@pytest.mark.long
def test_the_pictures_are_those_of_the_models():
    assert drawn() == covered._pictures(), "run python -m tests.covered_pictures"
