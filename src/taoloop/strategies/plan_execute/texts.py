"""What is said about plans: what is wrong with one, and how a run that follows one ended."""

from __future__ import annotations

from taoloop.core.text import TextCatalog

TEXTS = TextCatalog(
    "core",
    {
        # what is wrong with a plan, for the model and for a person who edits it
        "plan_invalid": "The plan cannot be carried out. {problems}",
        "plan_invalid_hint": "Call make_plan again with the whole plan, corrected. Tools of the steps: {tools}.",
        "plan_form": "It is not of the form that make_plan takes, steps with a number and a goal each: {problem}.",
        "plan_empty": "It has no steps.",
        "plan_too_long": "It has {count} steps; at most {allowed} are allowed: combine some.",
        "plan_number_twice": "The number {number} is there twice.",
        "plan_number_used": "Step {number}: the steps before {first} are over; number the new ones from {first}.",
        "plan_no_goal": "Step {number} has no goal.",
        "plan_unknown_step": "Step {number} depends on step {other}, which is neither in this plan nor done.",
        "plan_cycle": "Steps {numbers} depend on each other in a circle.",
        "plan_unknown_tool": "Step {number}: there is no tool {tool!r}.",
        "plan_unknown_arg": "Step {number}: {tool} has no argument {name!r}; it takes: {known}.",
        "plan_lacks_arg": "Step {number}: the call of {tool} lacks {name!r}.",
        "plan_misfit": "Step {number}: the call of {tool} does not fit: {problem}.",
        "plan_origin_form": "Step {number}: {origin!r} is no origin; write"
        ' {{"from": "tool:NAME.field", "step": NUMBER}}.',
        "plan_origin_tool": "Step {number}: the origin {origin!r} names {tool!r}, which is no tool.",
        "plan_origin_step": "Step {number}: the origin {origin!r} is of step {other}, which is not before it.",
        "plan_origin_call": "Step {number}: the origin {origin!r} is of step {other}, which does not call {tool}.",
        "plan_origin_field": "Step {number}: the output of {tool} has no field as in {origin!r}.",
        "plan_expect": "Step {number}: {expect!r} is no condition over the outputs of its calls ({names}): {problem}.",
        "plan_no_other": "The plan was carried out, and no other plan may be made (max_replans {allowed}): give the"
        " final answer.",
        "plan_only": "Nothing was called: a plan comes first. List the call in a step of a plan (make_plan).",
        "plan_alone": "Nothing was called: make_plan must be the only call of a reply.",
        # how a run that follows a plan ended
        "plan_refused_twice": "The model made no plan that can be carried out. Last: {detail}",
        "plan_made": "Steps of the plan: {count}. The executor carries them out.",
        "plan_step_reason": "Step {number} of the plan: {goal}",
        # how the run of a step ended
        "step_done": "The step made the calls that it lists: {count}.",
        "step_answered": "The model ended the step; its calls: {count}.",
        "step_failed": "The call of {tool} failed: {detail}",
        "step_unmade": "The call of {tool} that the plan lists was not made with a value that it allows.",
        "step_no_value": "No value was found at {origin} for the call of {tool}: the calls there returned none, failed,"
        " gave an output that is not kept as a whole, or are those of an agent. Leave the calls of this step open, and"
        " its model reads what the steps before it gave.",
        "step_unexpected": "What the plan expects does not hold: {expect}; it read {values}.",
        "step_no_condition": "What the plan expects cannot be determined: {expect}: {problem}",
        "step_reported": "The model reports: {detail}",
    },
)
