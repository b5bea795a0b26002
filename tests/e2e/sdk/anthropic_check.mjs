// Asks a node as the official JavaScript SDK does: node anthropic_check.mjs BASE_URL MODEL.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";

const [url, model] = process.argv.slice(2);
const client = new Anthropic({ baseURL: url, apiKey: "any", maxRetries: 0 });
const messages = [{ role: "user", content: "Say hello." }];
const asked = { model, system: "Be brief.", messages, max_tokens: 8, temperature: 0 };
const promptTokens = (usage) => usage.input_tokens + usage.cache_read_input_tokens;

const ids = [];
for await (const entry of client.models.list()) ids.push(entry.id);
assert.ok(ids.includes(model));
assert.equal((await client.models.retrieve(model)).id, model);

const whole = await client.messages.create(asked);
assert.equal(whole.model, model);
assert.equal(whole.stop_reason, "max_tokens");
assert.equal(whole.usage.output_tokens, 8);
assert.ok(whole._request_id);
const counted = await client.messages.countTokens({ model, system: asked.system, messages });
assert.equal(counted.input_tokens, promptTokens(whole.usage));

let text = "";
for await (const event of await client.messages.create({ ...asked, stream: true })) {
  if (event.type === "message_start") assert.equal(promptTokens(event.message.usage), counted.input_tokens);
  if (event.type === "content_block_delta") text += event.delta.text;
}
assert.ok(text.length > 0);
const final = await client.messages.stream(asked).finalMessage();
assert.equal(final.content[0].text, text);
assert.equal(promptTokens(final.usage), counted.input_tokens);

const refused = (kind, words) => (error) => {
  assert.ok(error instanceof kind, error);
  assert.ok(error.requestID && error.error.request_id === error.requestID);
  assert.ok(error.error.error.message.includes(words), error.error.error.message);
  return true;
};
await assert.rejects(
  client.messages.create({ ...asked, model: "absent" }), refused(Anthropic.NotFoundError, "not installed"),
);
await assert.rejects(
  client.messages.create({ ...asked, messages: [{ role: "user", content: "word ".repeat(5000) }] }),
  refused(Anthropic.BadRequestError, "prompt is too long: "),
);
const tools = [{ name: "weather", input_schema: { type: "object", properties: {} } }];
await assert.rejects(
  client.messages.create({ ...asked, tools }), refused(Anthropic.BadRequestError, "no place for tools"),
);
console.log("javascript: all right");
