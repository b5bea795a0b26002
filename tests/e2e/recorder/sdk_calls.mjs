// node sdk_calls.mjs SDK URL FOLDER: the official JavaScript SDKs' calls that the recorder keeps, in a fixed order; all texts are ours. FOLDER holds
// node_modules.
import { createRequire } from "node:module";

const [sdk, url, folder] = process.argv.slice(2);
const require = createRequire(folder + "/");
const city = { type: "object", properties: { city: { type: "string", description: "Its name." } }, required: ["city"] };
const question = "How is the weather in Bonn?";

async function anthropicCalls() {
  const Anthropic = require("@anthropic-ai/sdk").default;
  const client = new Anthropic({ baseURL: url, apiKey: "any", maxRetries: 0 });
  const asked = { model: "small", max_tokens: 100, system: "Be brief." };
  const messages = [{ role: "user", content: [{ type: "text", text: question, cache_control: { type: "ephemeral" } }] }];
  await client.messages.create({ ...asked, messages });
  await client.messages.stream({ ...asked, messages }).finalMessage();
  const tools = [{ name: "weather", description: "Of a city.", input_schema: city }];
  const called = await client.messages.create({ ...asked, messages, tools, tool_choice: { type: "any" } });
  const result = { type: "tool_result", tool_use_id: called.content.at(-1).id, content: "no city", is_error: true };
  messages.push({ role: "assistant", content: called.content }, { role: "user", content: [result] });
  await client.messages.create({ ...asked, messages, tools });
  await client.messages.countTokens({ model: "small", messages, tools });
}

async function openaiCalls() {
  const OpenAI = require("openai").default;
  const client = new OpenAI({ baseURL: url + "/v1", apiKey: "any", maxRetries: 0 });
  const messages = [{ role: "user", content: [{ type: "text", text: question }] }];
  await client.chat.completions.create({ model: "small", messages });
  await client.chat.completions.stream({ model: "small", messages, stream_options: { include_usage: true } }).finalMessage();
  const tools = [{ type: "function", function: { name: "weather", description: "Of a city.", parameters: city } }];
  const called = (await client.chat.completions.create({ model: "small", messages, tools })).choices[0].message;
  messages.push(called, { role: "tool", tool_call_id: called.tool_calls[0].id, content: "Rain" });
  await client.chat.completions.create({ model: "small", messages, tools });
}

await { anthropic: anthropicCalls, openai: openaiCalls }[sdk]();
