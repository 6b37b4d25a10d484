// npm `@ag-ui/client`, the client of AG-UI's front ends, against the gateway; prints what it got as one JSON object.
import { HttpAgent } from '@ag-ui/client';

const url = `${process.env.GATEWAY_URL.replace(/\/v1$/, '')}/v1/agui`;
const headers = { Authorization: `Bearer ${process.env.GATEWAY_KEY}` };
const tools = [{ name: 'look_outside', description: 'The sky.', parameters: { type: 'object', properties: { window: { type: 'string' } } } }];

async function agentWith(name, ...questions) {
  const agent = new HttpAgent({ url: `${url}/${name}`, headers });
  for (const content of questions) agent.addMessage({ id: crypto.randomUUID(), role: 'user', content });
  return agent;
}

const roles = (agent) => agent.messages.map((message) => message.role);
const last = (agent) => agent.messages.at(-1).content;
const got = {};

const chat = await agentWith('assistant', 'Double 4.');
const events = [];
await chat.runAgent({}, { onEvent: ({ event }) => void events.push(event.type) });
got.chat = [roles(chat), last(chat), events[0], events.at(-1)];
chat.addMessage({ id: crypto.randomUUID(), role: 'user', content: 'I am Ann. What is my name?' });
await chat.runAgent();
got.next = last(chat);

const front = await agentWith('assistant', 'Look outside.');
await front.runAgent({ tools });
const call = front.messages.at(-1).toolCalls[0];
front.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: call.id, content: `all red in the ${JSON.parse(call.function.arguments).window}` });
await front.runAgent({ tools });
got.tools = [roles(front), last(front)];

const waiting = await agentWith('clerk', 'Write the file.');
await waiting.runAgent();
const [interrupt] = waiting.pendingInterrupts;
got.interrupt = [interrupt.reason, waiting.pendingInterrupts.length, Boolean(interrupt.responseSchema)];
await waiting.runAgent({ resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: false, note: 'Not now.' } }] });
got.resumed = [last(waiting), waiting.pendingInterrupts.length];

const nobody = await agentWith('nobody', 'Double 4.');
got.error = await nobody.runAgent().catch((error) => [error.status, error.payload.type, error.payload.code]);
console.log(JSON.stringify(got));
