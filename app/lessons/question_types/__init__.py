"""The types of questions, by the name that lesson files use."""

from headlight.app.lessons.question import QuestionType
from headlight.app.lessons.question_types.acts import ActType, ReadType
from headlight.app.lessons.question_types.arithmetic import (
    PositionType,
    ScoreType,
    ShapeType,
    SoftmaxType,
)
from headlight.app.lessons.question_types.attention import NamedHeadType, RowType, SharesType
from headlight.app.lessons.question_types.decoding import NextTokenType, WithoutType
from headlight.app.lessons.question_types.masks import MaskType
from headlight.app.lessons.question_types.statements import StatementType

TYPES: dict[str, QuestionType] = {
    question_type.name: question_type
    for question_type in (
        RowType(),
        SharesType(),
        MaskType(),
        ScoreType(),
        SoftmaxType(),
        ShapeType(),
        PositionType(),
        NamedHeadType(),
        WithoutType(),
        NextTokenType(),
        StatementType(),
        ActType(),
        ReadType(),
    )
}
