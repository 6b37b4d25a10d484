// npm `openai`, the official client for Node.js, against the gateway; prints what it got as one JSON object.
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.GATEWAY_URL, apiKey: process.env.GATEWAY_KEY, maxRetries: 0 });
const messages = [{ role: 'user', content: 'Double 4.' }];
const got = {};

got.models = (await client.models.list()).data.map((one) => one.id);
got.chat = (await client.chat.completions.create({ model: 'assistant', messages })).choices[0].message.content;
got.streamed = (await client.chat.completions.stream({ model: 'assistant', messages }).finalChatCompletion()).choices[0].message.content;
const first = await client.responses.create({ model: 'assistant', input: 'Double 4.' });
got.response = first.output_text;
const next = await client.responses.stream({ model: 'assistant', input: 'What is my name?', previous_response_id: first.id }).finalResponse();
got.next = next.output_text;
got.error = await client.chat.completions.create({ model: 'nobody', messages }).catch((error) => [error.status, error.code]);
console.log(JSON.stringify(got));
