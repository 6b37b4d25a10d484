// npm `ai` with `@ai-sdk/openai-compatible` against the gateway; prints what it got as one JSON object.
// Usage: node ai.mjs SCENARIO; the address and the key stand in GATEWAY_URL and GATEWAY_KEY.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount, Output, streamText, tool } from 'ai';
import { z } from 'zod';

const provider = createOpenAICompatible({
  name: 'taoloop',
  baseURL: process.env.GATEWAY_URL,
  apiKey: process.env.GATEWAY_KEY,
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const settings = { model: provider('assistant'), maxRetries: 0 };
const look_outside = tool({
  description: 'What the sky looks like.',
  inputSchema: z.object({ window: z.string() }),
  execute: async ({ window }) => `all red in the ${window}`,
});
const tools = { tools: { look_outside }, stopWhen: isStepCount(5) };

async function streamed(options) {
  const pieces = [];
  const errors = [];
  const result = streamText({ ...settings, ...options, onError: ({ error }) => errors.push(error) });
  for await (const piece of result.textStream) pieces.push(piece);
  if (errors.length) return { pieces, error: String(errors[0].message ?? errors[0]) };
  return { pieces, text: await result.text, finish: await result.finishReason, usage: await result.usage, steps: (await result.steps).length };
}

const scenarios = {
  text: async () => {
    const { text, finishReason, usage } = await generateText({ ...settings, system: 'Be brief.', prompt: 'Double 4.' });
    return { text, finish: finishReason, usage };
  },
  stream: () => streamed({ prompt: 'Double 4.' }),
  tools: async () => {
    const { text, steps } = await generateText({ ...settings, ...tools, prompt: 'Look outside.' });
    return { text, steps: steps.length, calls: steps.flatMap((step) => step.toolCalls.map((call) => call.input)) };
  },
  'stream-tools': () => streamed({ ...tools, prompt: 'Look outside.' }),
  object: async () => {
    const schema = z.object({ city: z.string(), degrees: z.number() });
    const { output } = await generateText({ ...settings, output: Output.object({ schema }), prompt: 'The weather of Rome as JSON.' });
    return { output };
  },
  chat: async () => {
    const messages = [
      { role: 'user', content: 'My name is Ann.' },
      { role: 'assistant', content: 'Hello Ann.' },
      { role: 'user', content: 'What is my name?' },
    ];
    return { text: (await generateText({ ...settings, messages })).text };
  },
  error: async () => {
    try {
      await generateText({ ...settings, model: provider('nobody'), prompt: 'Hi.' });
    } catch (error) {
      return { status: error.statusCode, message: error.message };
    }
  },
  broken: () => streamed({ prompt: 'Break off.' }),
};

console.log(JSON.stringify(await scenarios[process.argv[2]]()));
