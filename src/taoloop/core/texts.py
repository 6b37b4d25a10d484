"""Texts for people and models about how a run ended and why a call was not run, in the run's language."""

from __future__ import annotations

import math

from taoloop.core.attachments.files import AttachmentInfo, attached
from taoloop.core.decision import EvidenceGap
from taoloop.core.events import LimitReached, RunStarted
from taoloop.core.images import ImageInfo
from taoloop.core.text import TextCatalog

TEXTS = TextCatalog(
    "core",
    {
        "content_summarised": "{call_id} {tool} {name} ({digest}): its text is not here any more; load it again before "
        "you use it.",
        # how a run ended, or what it waits for
        "max_steps": "max loops reached without final: the step limit of {allowed} was reached and the task is not "
        "done. Narrow the task or raise the limit (max_steps).",
        "max_tool_calls": "The limit of {allowed} tool calls was reached and the task is not done. "
        "Raise max_tool_calls.",
        "max_tokens": "The token budget of {allowed} was used up ({used}) and the task is not done. Raise max_tokens.",
        "max_cost_usd": "The budget of {allowed} USD was used up ({used}) and the task is not done. "
        "Raise max_cost_usd.",
        "unpriced": "The price of the model is unknown, so the budget of {allowed} USD cannot be enforced. "
        "Omit max_cost_usd, or limit the run by max_tokens.",
        "max_wall_s": "The time limit of {allowed} s was reached and the task is not done. Raise max_wall_s.",
        "max_working_s": "The working-time limit of {allowed} s was reached and the task is not done. "
        "Raise max_working_s.",
        "max_consecutive_errors": "{used} errors in a row (limit {allowed}); the task is not done.",
        "max_total_errors": "{used} errors in this run (limit {allowed}); the task is not done.",
        "repeat_stop": "The same action gave the same result {used} times (limit {allowed}); the task is not done.",
        "max_replans": "The plan is broken or refused, and no other one may be made (max_replans {allowed}); the task"
        " is not done.",
        "unreadable": "The model output could not be parsed: {used} unreadable replies in a row. Last: {detail}",
        "answered": "The model gave its final answer.",
        "taken_over": "The agent {agent!r} took over. {reason}",
        "voted": "The most frequent answer: {count} of {samples} samples gave it.",
        "react_ended": "ReAct gave no answer within its {steps} steps. ",
        "no_vote": "None of the {samples} samples was readable. Last: {detail}",
        "blocked": "The task is not done. These calls were denied, because nobody could be asked or answered in time: "
        "{detail}. Resume the run under a policy that allows them, or under a profile that asks, such as supervised.",
        "unsupported": "The answer was sent back once, and its evidence still does not hold. {detail}",
        "unsupported_vote": "The samples see no observation, and the evidence of their answer does not hold. {detail}",
        # what the evidence for an answer lacks
        "gap_no_citation": "The answer cites no observation of this run.",
        "gap_unknown": "{citation}: this run has no such call.",
        "gap_unknown_passage": "{citation}: no observation of this run has this passage.",
        "gap_failed": "{citation}: this call failed, so it is no evidence.",
        "gap_no_outcome": "{citation}: this call has no result.",
        "gap_not_contained": "{citation} does not contain {value}, in the sentence: {sentence}",
        "gap_not_observed": "No observation that succeeded contains {value}, in the field {sentence}",
        "gap_uncited": "No observation of this run contains {value}, in a sentence that cites nothing: {sentence}",
        "gap_irrelevant": "{citation} contains nothing of what the sentence says: {sentence}",
        "gap_unsourced": "The answer says that it rests on no observation, and {value} is not in the task, in the"
        " sentence: {sentence}",
        "gap_used_tools": "The answer says that it rests on no observation, and these calls had results: {citation}.",
        "gap_advice_output": "Copy numbers and identifiers from an observation that succeeded. Leave out what no"
        " observation says, or call a tool to find it out.",
        "gap_advice": "Support each statement of fact by a call of this run that succeeded, cited as [obs:CALL_ID] at"
        " the end of the sentence, and copy quotations, numbers and names as its observation has them. Leave out what"
        " no observation says, or call a tool to find it out. An answer that needs no tool ends with [obs:none].",
        "stopped": "Stopped before it was done; resume it to continue.",
        "cancelled": "Stopped by {by}; resume it to continue. {note}",
        "abandoned": "Abandoned by {by}; it cannot be resumed. {note}",
        "model_failed": "The model failed: {detail}",
        "too_long": "Even at its shortest the prompt has about {size} tokens, and the model accepts about {window}. "
        "Shorten the task, the earlier conversation, the instructions or the tools, or use a model with a larger "
        "window (context_tokens).",
        "closing_failed": " The last turn gave no answer: {detail}",
        "no_closing": "the reply was not a final answer",
        "waiting": "Waiting for a person's answer on: {detail}",
        "handed_over": "Waiting for the result of: {detail}",
        "in_doubt": "Outcome unknown; a person must say whether it happened: {detail}",
        "tool_changed": "The tool {tool!r} has changed. This is what it is now:\n\n{card}",
        # how a reflection ended, and how critiques were judged
        "reflect_clean": "The critique of the draft found nothing to correct.",
        "reflect_revised": "The critique found nothing more to correct; revisions: {count}.",
        "reflect_void": "The draft stands without a critique: what its critic said cited nothing, twice.",
        "reflect_failed": "The draft stands without a critique, which failed: {detail}",
        "reflect_rounds": "The limit of revisions ({revisions}) was reached; findings that are still open ({count}): "
        "{findings}",
        "reflect_same": "The revision did not change the draft; findings that are still open ({count}): {findings}",
        "reflect_again": "The revision went back to an earlier draft; findings that are still open ({count}): "
        "{findings}",
        "reflect_limit": "The limit {limit} ended the reflection.",
        "reflect_unreviewed": "The draft was not reviewed.",
        "reflect_open": "Findings that are still open ({count}): {findings}",
        "reflect_before": "Findings about the draft before ({count}): {findings}",
        "reflect_kept": "The answer is the draft before the revision that was under way; its open findings "
        "({count}): {findings}",
        "reflect_evaluated": "The answer was judged wrong: {reason}",
        "critique_none": "Nothing to correct.",
        "critique_counts": "Findings that count: {count}",
        "critique_dropped": "Dropped: {count}",
        "critique_left_out": "Left out, because at most {allowed} findings count: {count}",
        "critique_refused": "This critique is refused, because nothing of it cites an observation of this run or "
        "words of the task. Give each finding with what it rests on, as [obs:{example}] or "
        "[task: exact words], or reply NONE.",
        "critique_void": "This critique counts as none: refused once with the reason, it still cites nothing.",
        "critique_uncited": "{text!r} cites nothing.",
        "critique_unknown": "{text!r} cites {detail}, which is no observation of this run.",
        "critique_misquoted": "{text!r} quotes {detail!r}, which stands neither in what it cites, nor in the task, nor "
        "in the draft.",
        # how the run of a graph ended
        "graph_done": "The graph reached its end; nodes run: {count}.",
        "graph_task": "The task does not fit the state of the graph: {reason}",
        "graph_task_json": "it must be a JSON object of fields, such as {example}.",
        "graph_task_field": "there is no field {name!r}; known fields: {known}.",
        "graph_task_lacks": "it lacks {names}.",
        "graph_node": "The node {node!r} failed: {reason}. Correct the cause and resume the run: it continues at this "
        "node. A node that follows such a failure is its on_error.",
        "graph_limit": "The node {node!r} was entered {count} times, its max_visits, and the task is not done. "
        "Resume the run to let it loop as often again, or start one with another max_visits or an at_limit.",
        "graph_misfit": "its result does not fit the state: {problem}",
        "graph_condition": "the condition {condition!r} of an edge from it has no value: {problem}",
        "graph_too_long": "its result is too long for the state ({size} characters)",
        "graph_output_lost": "its call happened, and its result, which the state needs, is lost",
        "graph_no_object": "its result is no object of fields; say by writes=… which field it is",
        # why a call was not run
        "no_such_tool": "there is no such tool in this run",
        "unknown_tool": "There is no tool called {name!r}.",
        "known_tools": "Known tools: {names}.",
        "no_tools": "This run has no tools: answer without one.",
        "tool_call_limit": "The run may make {allowed} tool calls; none is left.",
        "denied": "This action was denied: {reasons}.",
        "reason_separator": "; ",
        # the same for a model that must not read what a tool says
        "opaque_invalid_arguments": "The arguments with their values filled in do not fit the tool's schema.",
        "opaque_denied": "The policy does not allow this call.",
        "opaque_refused": "A person refused this call. Do not ask for it again.",
        "opaque_timeout": "The call gave no result in time.",
        "opaque_tool_error": "The tool failed.",
        "opaque_invalid_output": "The call was carried out, but its result does not fit what the tool declares.",
        "opaque_in_doubt": "It may or may not have happened. Find out with a tool that only reads before you"
        " try again.",
        "opaque_not_done": "It did not happen.",
        "opaque_failed": "The call failed.",
        # images
        "image": "[image {kind} {width}×{height}, {size}, {ref}]",
        "image_with_words": "[image {kind} {width}×{height}, {size}, {ref}: {words}]",
        "image_described": "Description of {ref}: {text}",
        "image_undescribed": "It could not be described: {reason}",
        "image_withheld": "[an image was withheld: it contains a secret]",
        "image_at": "[image at {url}, {ref}]",
        "image_at_with_words": "[image at {url}, {ref}: {words}]",
        "file": "[file {name}, {kind}, {size}, {ref}]",
        "file_withheld": "[a file was withheld: it contains a secret]",
        # what is wrong with the stored events of a run
        "event_changed": "event {seq} ({kind}) is not what was written: it was edited, replaced or moved",
        "description_changed": "the agent's description that event {seq} names is not what was written",
        "description_missing": "the agent's description that event {seq} names is missing",
        "event_out_of_place": "event {seq} is in the place of event {expected}",
        "event_missing": "event {first} is missing",
        "events_missing": "the events {first} to {last} are missing",
        "end_missing": "the end is missing: what was written from event {seq} on",
        "events_added": "event {seq} and what follows it were added after the end of the run",
        # answers of people
        "refused": "A person refused this action: {note}.",
        "timed_out_approval": "Nobody answered in time: {note}.",
        "no_reason": "no reason was given",
        "refused_hint": "Do not ask for it again.",
        "declined": "The person did not answer: {note}.",
        "declined_hint": "Go on without the answer, or say what is missing.",
        "preapproved": "tier {tier} was approved in advance",
        # calls without an outcome
        "happened_by_probe": "This call happened: the tool's own check found so afterwards. Its output was lost.",
        "happened_by_person": "This call happened: {by} says so. Its output was lost.",
        "no_outcome": "The process stopped while this call ran: its effect may or may not have happened. "
        "It was not repeated.",
        "timed_out": "This call gave no result in time: its effect may or may not have happened, or may still happen.",
        "unknown_hint": "Find out with a tool that only reads whether it happened before you try again.",
        "not_done": "This call did not happen: it was started {count} times and never finished.",
        "not_done_hint": "The same call would most likely end the same way; do it another way, or say so.",
        "not_done_changed": "This call did not happen, and its tool has changed since, so it was not repeated.",
        "not_done_changed_hint": "Ask for it again, as the tool is now.",
        # runs that are one call
        "call_done": "The call was made.",
        "call_failed": "The call was not made, or failed: {code}: {message}",
        # runs that undo another one
        "undo": "Undo {call_id} of run {run_id}.",
        "undo_done": "The plan was carried out to its end; calls undone: {count}.",
        "undo_failed": "{call_id} of run {run_id} was not undone: {why} The entries after it in the plan were not"
        " carried out.",
        "undo_resumed": "The calls in progress when the process ended are settled; the rest needs a new plan.",
    },
)


def gap_text(language: str, gap: EvidenceGap) -> str:
    """What the evidence for an answer lacks, as a sentence."""
    name = "unknown_passage" if gap.code == "unknown" and gap.citation.startswith("doc:") else gap.code
    return TEXTS.text(language, f"gap_{name}", citation=gap.citation, value=gap.value, sentence=gap.sentence)


end_message = TEXTS.text
"""A text by the run's language and its name: `end_message("zh", "waiting", detail=...)`."""


def limit_text(language: str, reached: LimitReached, detail: str = "") -> str:
    """Why the limit ended the run, and what to do."""
    name = "unreadable" if reached.status == "unreadable" else reached.limit
    if name == "max_cost_usd" and math.isinf(reached.used):
        name = "unpriced"
    return TEXTS.text(language, name, allowed=_plain(reached.allowed), used=_plain(reached.used), detail=detail)


def image_label(language: str, image: ImageInfo) -> str:
    """An image in one line, as people and models read it: type, size, the name of its artifact, what it shows."""
    return TEXTS.text(
        language,
        ("image_at" if image.url else "image") + ("_with_words" if image.alt else ""),
        kind=image.extension,
        width=image.width,
        height=image.height,
        size=_size(image.size_bytes),
        ref=image.ref,
        words=image.alt,
        url=image.url,
    )


def label_of(language: str, info: AttachmentInfo) -> str:
    """An image or a file in one line, as people and models read it."""
    if isinstance(info, ImageInfo):
        return image_label(language, info)
    size = _size(info.size_bytes)
    return TEXTS.text(language, "file", name=info.file_name, kind=info.media_type, size=size, ref=info.ref)


def _size(size_bytes: int) -> str:
    kib = size_bytes / 1024
    return f"{size_bytes} B" if kib < 1 else f"{kib:.0f} KB" if kib < 1024 else f"{kib / 1024:.1f} MB"


def task_with_attachments(started: RunStarted) -> str:
    """The task of a run as people read it, with a line for each of its images and files."""
    language = started.agent.language
    return "\n".join([started.task, *(label_of(language, info) for info in attached(started))])


def preapproval_note(language: str, tier: str | None) -> str:
    """The note of an approval that the operator gave in advance, for all calls of a tier."""
    return TEXTS.text(language, "preapproved", tier=tier or "destructive")


def _plain(value: float) -> str:
    if math.isinf(value):
        return "?"
    return f"{value:.6g}" if value % 1 else f"{int(value)}"
