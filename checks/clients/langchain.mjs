// LangChain.js: `createAgent` with `@langchain/openai` against the gateway; prints what one scenario gave as a JSON object.
import { createAgent, tool } from 'langchain';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';

const chat = (name) => new ChatOpenAI({
  model: name,
  apiKey: process.env.GATEWAY_KEY,
  maxRetries: 0,
  configuration: { baseURL: process.env.GATEWAY_URL },
});
const look = tool(async ({ window }) => `all red in the ${window}`, {
  name: 'look_outside',
  description: 'What the sky looks like.',
  schema: z.object({ window: z.string() }),
});
const agent = createAgent({ model: chat('assistant'), tools: [look] });
const user = (content) => ({ role: 'user', content });
const texts = (messages) => messages.map((message) => [message.type, message.text]);

const scenarios = {
  text: async () => texts((await agent.invoke({ messages: [user('Double 4.')] })).messages),
  tools: async () => {
    const { messages } = await agent.invoke({ messages: [user('Look outside.')] });
    return { messages: texts(messages), ids: messages.filter((message) => message.type === 'ai').map((message) => message.id) };
  },
  stream: async () => {
    const pieces = [];
    for await (const [piece] of await agent.stream({ messages: [user('Double 4.')] }, { streamMode: 'messages' })) pieces.push(piece.text);
    return pieces;
  },
  // LangChain.js puts messages together by their ids, and drops one that has the id of another.
  turns: async () => {
    const first = await agent.invoke({ messages: [user('I am Ann. Look outside.')] });
    return texts((await agent.invoke({ messages: [...first.messages, user('What is my name?')] })).messages);
  },
  error: async () => {
    try {
      await createAgent({ model: chat('nobody'), tools: [] }).invoke({ messages: [user('Hi.')] });
    } catch (error) {
      return { status: error.status, message: error.message };
    }
  },
};

console.log(JSON.stringify(await scenarios[process.argv[2]]()));
