"""What Open WebUI sends to an OpenAI-compatible server, in the form of its source (0.12), with texts of our own.

Its server lists models, streams each answer, and then asks the same model for a title, tags and follow-up questions,
with the chat quoted in the one message. Context that it has retrieved is written into the user's message. Of what it
adds itself, `metadata` and its own ids stay behind; the user's settings are fields of the request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HEADERS = {
    "Content-Type": "application/json",
    "HTTP-Referer": "https://openwebui.com/",
    "X-Title": "Open WebUI",
    "X-OpenWebUI-User-Name": "Ann%20Lee",
    "X-OpenWebUI-User-Id": "8f7c3a52-0a0d-4a9e-9d0e-6c2f7d1b0c11",
    "X-OpenWebUI-User-Email": "ann@example.com",
    "X-OpenWebUI-User-Role": "user",
    "X-OpenWebUI-Chat-Id": "1d1f2a34-6a57-4c6f-8f4c-2c2a7a9e5b10",
}
"""The last five with `ENABLE_FORWARD_USER_INFO_HEADERS`."""

_TASK = """\
### Task:
{task}
### Guidelines:
- Use the language of the chat.
- The whole response is one JSON object, without any other text.
### Output:
JSON format: {form}
### Chat History:
<chat_history>
{history}
</chat_history>"""

_CONTEXT = """\
### Task:
Answer the query from the context, and cite sources by their id in brackets where they have one.

### Guidelines:
- Say so if you do not know the answer.
- Use the language of the query.

<context>
{context}
</context>

{query}"""


def chat(model: str, messages: Sequence[Mapping[str, Any]], **settings: Any) -> dict[str, Any]:
    """A message of the user."""
    return {"stream": True, "model": model, "messages": [*messages], **settings}


def chat_with_usage(model: str, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The same for a model with the capability `usage`, and with settings of the chat."""
    settings = {
        "temperature": 0.8,
        "top_p": 0.9,
        "max_tokens": 512,
        "seed": 42,
        "stop": ["\n\n\n"],
        "frequency_penalty": 0.2,
    }
    return chat(model, messages, stream_options={"include_usage": True}, **settings)


def task(model: str, kind: str, messages: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The request for a title, tags or follow-up questions, after an answer."""
    forms = {
        "title": ("Write a title of 2 to 4 words for the chat.", '{ "title": "the title here" }'),
        "tags": ("Write 1 to 3 tags for the themes of the chat.", '{ "tags": ["tag1", "tag2"] }'),
        "follow_ups": ("Suggest questions that the user may ask next.", '{ "follow_ups": ["Question 1?"] }'),
    }
    history = "\n".join(f"{message['role'].upper()}: {message['content']}" for message in messages)
    text = _TASK.format(task=forms[kind][0], form=forms[kind][1], history=history)
    messages = [{"role": "user", "content": text}]
    return {"model": model, "messages": messages, "stream": False, "max_completion_tokens": 1000}


def with_context(query: str, sources: Mapping[str, str]) -> dict[str, str]:
    """The user's message with retrieved documents."""
    documents = enumerate(sources.items(), start=1)
    context = "\n".join(f'<source id="{number}" name="{name}">{text}</source>' for number, (name, text) in documents)
    return {"role": "user", "content": _CONTEXT.format(context=context, query=query)}
