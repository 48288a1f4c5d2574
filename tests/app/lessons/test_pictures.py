"""The covered pictures on the page Learn: one of each lesson, out of its model, without the
answer."""

import pytest

from headlight.app.lessons.lesson import load_folder, pictures
from tests.lesson_pictures import pictures as drawn


def test_every_shipped_lesson_has_a_question_and_a_picture():
    lessons = load_folder()[0]
    assert {lesson.name for lesson in lessons} == pictures().keys()
    assert all(lesson.question != lesson.title for lesson in lessons)


def test_what_is_covered_is_not_in_the_picture():
    for name, picture in pictures().items():
        covered = picture.get("covered")
        if picture["kind"] == "map" and covered != "future":
            assert picture["cells"][covered] == [], name
        elif picture["kind"] == "map":
            assert all(
                share is None for i, row in enumerate(picture["cells"]) for share in row[i + 1 :]
            )
        elif picture["kind"] == "lines":
            assert covered not in {target for _, target in picture["links"]}
        else:
            assert covered or picture["bars"][-1][1] is None, name


@pytest.mark.long
def test_the_pictures_are_those_of_the_models():
    assert drawn() == pictures(), "run python -m tests.lesson_pictures"
