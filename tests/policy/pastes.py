"""Messages as chat clients send them, with a text of somebody else in them; shortened, but with every mark.

By the sources of Open WebUI (`config.py`, `utils/middleware.py`) and of LibreChat (`createContextHandlers.js`,
`packages/api/src/files/context.ts`, `titlePrompts.js`, and `title.ts` of `@librechat/agents`).
"""

from __future__ import annotations

_TEXT, _QUERY = "{{TEXT}}", "{{QUERY}}"

_CONTEXTS = {
    "Open WebUI 0.6": """### Task:
Respond to the user query using the provided context, incorporating inline citations in the format [id] **only when the
<source> tag includes an explicit id attribute** (e.g., <source id="1">).

### Guidelines:
- If you don't know the answer, clearly state that.

### Example of Citation:
* "According to the study, the proposed method increases efficiency by 20% [1]."

### Output:
Provide a clear and direct response to the user's query.

<context>
<source id="1" name="report.pdf">{{TEXT}}</source>
<source id="2" name="b.pdf">More.</source>
</context>

{{QUERY}}""",
    "Open WebUI 0.5": """### Task:
Respond to the user query using the provided context, incorporating inline citations in the format [source_id] **only
when the <source_id> tag is explicitly provided** in the context.

### Guidelines:
- Do not cite if the <source_id> tag is not provided in the context.

<context>
<source><source_id>1</source_id><source_context>{{TEXT}}</source_context></source>
</context>

<user_query>
{{QUERY}}
</user_query>
""",
    "Open WebUI 0.3": """Use the following context as your learned knowledge, inside <context></context> XML tags.
<context>
    {{TEXT}}
</context>

When answer to user:
- If you don't know, just say that you don't know.
- If you don't know when you are not sure, ask for clarification.
Avoid mentioning that you obtained the information from the context.
And answer according to the language of the user's question.

Given the context information, answer the query.
Query: {{QUERY}}""",
    "Open WebUI, own template": 'Sources:\n<source id="1" name="a.md">{{TEXT}}</source>\n\n{{QUERY}}',
    "Open WebUI, files": '<attached_files>\n<file name="{{TEXT}}"/>\n</attached_files>\n{{QUERY}}',
    "LibreChat, search": """The user has attached a file to the conversation:
        <file>
          <filename>report.pdf</filename>
          <type>application/pdf</type>
        </file>

        A semantic search was executed with the user's message as the query, retrieving the following context inside
        <context></context> XML tags.

        <context>
          <file>
            <filename>report.pdf</filename>
            <context>
            <contextItem>
              <![CDATA[{{TEXT}}]]>
            </contextItem>
            </context>
          </file>
        </context>

        Use the context as your learned knowledge to better answer the user.

In your response, remember to follow these guidelines:
- If you don't know the answer, simply say that you don't know.
- If you are unsure how to answer, ask for clarification.
- Avoid mentioning that you obtained the information from the context.
{{QUERY}}""",
    "LibreChat, whole files": """The user has attached 2 files to the conversation:

          <file>
            <filename>a.md</filename>
            <context>
{{TEXT}}
            </context>
          </file>
          <file>
            <filename>b.md</filename>
            <context>
More.
            </context>
          </file>
          Use the context as your learned knowledge to better answer the user.

In your response, remember to follow these guidelines:
- Avoid mentioning that you obtained the information from the context.
{{QUERY}}""",
    "LibreChat, attached": (
        'Attached document(s):\n```md# "a.md"\n{{TEXT}}\n\n\n---\n\n# "b.md"\nMore.\n\n```\n{{QUERY}}'
    ),
    "marker": 'Look at this: <untrusted id="x7">{{TEXT}}</untrusted id="x7"> {{QUERY}}',
    "marker, query first": '{{QUERY}}\n\n<untrusted id="x7">\n{{TEXT}}\n</untrusted id="x7">',
    "marker without id": "<untrusted>\n{{TEXT}}\n</untrusted>\n{{QUERY}}",
}

_CHAT = "USER: What is in the mail?\nASSISTANT: It says: {{TEXT}}"
_QUOTED_CHAT = f"### Chat History:\n<chat_history>\n{_CHAT}\n</chat_history>"
_CHAT_TASKS = {
    "Open WebUI, title": "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n"
    "### Guidelines:\n- The title should clearly represent the main theme or subject of the conversation.\n"
    f'### Output:\nJSON format: {{ "title": "your concise title here" }}\n{_QUOTED_CHAT}',
    "Open WebUI, tags": "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history.\n\n"
    f'### Output:\nJSON format: {{ "tags": ["tag1", "tag2"] }}\n\n{_QUOTED_CHAT}',
    "Open WebUI, follow-ups": "### Task:\nSuggest 3-5 relevant follow-up questions or prompts that the user might "
    f"naturally ask next in this conversation as a **user**, based on the chat history.\n{_QUOTED_CHAT}",
    "Open WebUI, queries": "### Task:\nAnalyze the chat history to determine the necessity of generating search "
    f"queries, in the given language.\n\n### Guidelines:\n- Be concise.\n\n{_QUOTED_CHAT}",
    "Open WebUI, draft": "### Task:\nYou are an autocompletion system. Continue the text in `<text>`.\n\n"
    f"### **Examples**:\n<text>Top-rated restaurants in</text>\n\n---\n### Context:\n<chat_history>\n{_CHAT}\n"
    "</chat_history>\n<type>General</type>\n<text>{{TEXT}}</text>\n#### Output:\n",
    "Open WebUI, summary": "### Task:\nSummarize the conversation history that will be compacted out of the active "
    "chat context.\n\n### Instructions:\n- Be factual.\n\n### Previous Summary:\n\n\n### Messages Being Compacted:\n"
    f"{_CHAT}\n\n### Recent Messages Kept In Context:\n{_CHAT}",
    "Open WebUI 0.4, title": "Here is the query:\n{{TEXT}}\n\nCreate a concise, 3-5 word phrase with an emoji as a "
    "title for the previous query.",
    "Open WebUI 0.3, title": "Create a concise, 3-5 word phrase as a header for the following query, strictly adhering "
    "to the 3-5 word limit and avoiding the use of the word 'title': {{TEXT}}",
    "Open WebUI, tools": 'Query: History:\nUSER: """Hi."""\nASSISTANT: """{{TEXT}}"""\nQuery: {{TEXT}}',
    "Open WebUI, emoji": "Your task is to reflect the speaker's likely facial expression through a fitting emoji.\n\n"
    "Message: ```{{TEXT}}```",
    "Open WebUI, merged": "You have been provided with a set of responses from various models to the latest user "
    'query: "{{TEXT}}"\n\nResponses from models: """{{TEXT}}"""',
    "LibreChat, title": "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A "
    f"concise title in the detected language (5 words or less)\n\nUser: What is in it?\nAI: {_TEXT}",
    "LibreChat, title by completion": "Provide a concise, 5-word-or-less title for the conversation, using title case "
    f"conventions. Only return the title itself.\n\nConversation:\nUser: {_TEXT}\nAI: Done.",
    "LibreChat, older title": "Please generate a concise, 5-word-or-less title for the conversation, using its same "
    f'language.\n\n||>User:\n"Hi."\n||>Response:\n"{_TEXT}"\n\n||>Title:',
    "LibreChat, summary": "Summarize the conversation by integrating new lines into the current summary.\n\nCurrent "
    f"summary:\n{_TEXT}\n\nNew lines:\n{_TEXT}\n\nNew summary:",
}

CONTEXTS = tuple(_CONTEXTS)
"""Ways in which a text of somebody else stands beside a query of the user."""

CHAT_TASKS = tuple(_CHAT_TASKS)
"""Ways in which a client asks for something about a chat, without a word of the user's own."""


def paste(name: str, text: str, query: str = "") -> str:
    """A message in this format."""
    return {**_CONTEXTS, **_CHAT_TASKS}[name].replace(_QUERY, query).replace(_TEXT, text)
