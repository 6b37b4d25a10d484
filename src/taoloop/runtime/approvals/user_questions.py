"""Answers to the questions that a model puts to a person (`ask_user`): read from a text, and checked by their form."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from taoloop.core.cards.questions import ANSWER, MAX_ANSWER_CHARS, choices_of
from taoloop.core.decision import excerpt
from taoloop.core.text import replace_surrogates
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.dialects.parsing.strict_json import NotJsonError, loads
from taoloop.errors import InvalidArguments
from taoloop.policy import CodeRule
from taoloop.policy.evidence.dates import dates_in
from taoloop.runtime.approvals.input_requests import misfit_of
from taoloop.runtime.approvals.request import (
    NO_WORDS,
    YES_WORDS,
    ApprovalAnswer,
    ApprovalRequest,
    approval_request,
    denying_rule,
    fit_edit,
)
from taoloop.runtime.texts import TEXTS
from taoloop.tools.input_question import InputQuestion
from taoloop.tools.toolbox import Toolbox

_TYPED = {"number", "integer"}
_MOST_READS = 5  # that a warning names


def question_answer(request: ApprovalRequest, text: str, *, by: str, authenticated: str = "") -> ApprovalAnswer:
    """The answer that a person wrote as a text: a choice by its number or its words, a number, a yes or a no.

    `authenticated` as in `ApprovalAnswer`.

    Raises:
        InvalidArguments: the text does not fit what the question asks for, or the call is no question.
    """
    value = answer_value(request, replace_surrogates(text).strip())
    answer = ApprovalAnswer(approved=True, args={ANSWER: value}, by=by, authenticated=authenticated)
    return checked_answer(request, answer)


def checked_answer(request: ApprovalRequest, answer: ApprovalAnswer) -> ApprovalAnswer:
    """An answer as it can be stored; one that is not approved declines the question, and its note says why.

    Raises:
        InvalidArguments: it has no `args`, for a plain yes says nothing, or they do not fit the form.
    """
    language = request.language
    if request.question is None or request.question.fields is None:
        message = TEXTS.text(language, "no_question", run_id=request.run_id, call_id=request.call_id)
        raise InvalidArguments(message, hint=TEXTS.text(language, "no_question_hint"))
    if answer.approved is not True:
        return replace(answer, approved=False, args=None, scope="call", batch=False)
    hint = _hint_of(request)
    if answer.args is None:
        raise InvalidArguments(TEXTS.text(language, "question_plain_yes"), hint=hint)
    args = dict(answer.args)
    if isinstance(args.get(ANSWER), str) and misfit_of(request.question.fields, args):
        args[ANSWER] = answer_value(request, args[ANSWER].strip())  # as a person writes it
    if misfit_of(request.question.fields, args):
        message = TEXTS.text(language, "question_misfit", answer=excerpt(str(args.get(ANSWER, args))))
        raise InvalidArguments(message, hint=hint)
    return replace(answer, args=args, scope="call", batch=False, digits=None)


def valid_answer(
    trace: Trace, call: CallView, answer: ApprovalAnswer, toolbox: Toolbox, rules: tuple[CodeRule, ...], *, hides: bool
) -> ApprovalAnswer:
    """An approver's answer to a call; a refusal if an operator's rule denies the arguments as it has edited them.

    Raises:
        InvalidArguments: its edited arguments do not fit the tool or the plan, or what it answers to a question of the
            model does not fit the form: then nobody has answered. `hides`: it does not say why arguments do not fit.
    """
    request = approval_request(trace, call)
    if request.question is not None:
        return checked_answer(request, answer)
    if not answer.approved or answer.args is None:
        return answer
    edited: object = answer.args  # whatever an approver gave
    args = dict(edited) if isinstance(edited, Mapping) else edited  # anything else the tool refuses
    try:
        answer = replace(answer, args=fit_edit(trace, call, toolbox, args))
    except InvalidArguments as error:
        raise InvalidArguments(TEXTS.run_text("edit_misfit" if hides else "edit_misfit_why", why=error)) from error
    if (denial := denying_rule(trace, call, answer, rules)) is not None:
        return ApprovalAnswer(approved=False, by=answer.by, note=denial)
    return answer


def question_warnings(question: InputQuestion, language: str) -> tuple[str, ...]:
    """What a person should know before they answer the model: whose words they may be, and that they ask for a secret.

    Nobody can tell from a question whether a text that the model has read made it ask.
    """
    reads, name = (question.quoted, "question_quotes") if question.quoted else (question.read_before, "question_after")
    own = TEXTS.text(language, "question_task")
    shown = [read or own for read in reads[:_MOST_READS]] + ["…"] * (len(reads) > _MOST_READS)
    texts = [TEXTS.text(language, name, calls=", ".join(shown))] if shown else []
    if question.secret:
        texts.append(TEXTS.text(language, "question_secret", words=question.secret))
    return tuple(texts)


def _hint_of(request: ApprovalRequest) -> str:
    if choices := choices_of(request.args):
        shown = "; ".join(f"{number}. {choice}" for number, choice in enumerate(choices, 1))
        return TEXTS.text(request.language, "question_choices", choices=shown)
    kind = str(request.args.get("format") or "text")
    form = TEXTS.text(request.language, f"form_{kind}", most=MAX_ANSWER_CHARS)
    return TEXTS.text(request.language, "question_format", form=form)


def answer_value(request: ApprovalRequest, text: str) -> Any:
    """A text as a value of the kind that the question asks for; the text itself where it is none."""
    if choices := choices_of(request.args):
        if text not in choices and text.isdecimal() and 1 <= int(text) <= len(choices):
            return choices[int(text) - 1]
        alike = [choice for choice in choices if choice.casefold() == text.casefold()]
        return alike[0] if len(alike) == 1 else text
    kind = request.args.get("format")
    word = text.strip(".!。！").casefold()
    if kind == "yes_no" and word in YES_WORDS | NO_WORDS:
        return word in YES_WORDS
    if kind in _TYPED:
        try:
            return loads(unicodedata.normalize("NFKC", text))
        except NotJsonError:
            return text
    return _day_of(text) if kind == "date" else text


def _day_of(text: str) -> str:
    """A date as a person writes it in the form 2026-01-31; the text itself if it is none, or may be two."""
    date = next(dates_in(text), None)
    if date is None or (date.start, date.end) != (0, len(text)) or len(date.readings) != 1 or 0 in date.readings[0]:
        return text
    return "{:04}-{:02}-{:02}".format(*date.readings[0])
