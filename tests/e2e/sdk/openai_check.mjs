// Asks a node as the official JavaScript SDK does: node openai_check.mjs BASE_URL MODEL.
import assert from "node:assert/strict";
import OpenAI from "openai";

const [url, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: url, apiKey: "any", maxRetries: 0 });
const messages = [{ role: "user", content: "Say hello." }];

const ids = [];
for await (const entry of client.models.list()) ids.push(entry.id);
assert.ok(ids.includes(model));
assert.equal((await client.models.retrieve(model)).id, model);

const whole = await client.chat.completions.create({ model, messages, max_tokens: 8, temperature: 0 });
assert.equal(whole.choices[0].finish_reason, "length");
assert.equal(whole.usage.completion_tokens, 8);

let text = "";
let usage;
const stream = await client.chat.completions.create({
  model, messages, max_tokens: 8, temperature: 0, stream: true, stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  text += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}
assert.equal(text, whole.choices[0].message.content);
assert.equal(usage.completion_tokens, 8);

const runner = client.chat.completions.stream({ model, messages, max_tokens: 4 });
assert.ok((await runner.finalContent()).length > 0);

await assert.rejects(client.chat.completions.create({ model: "absent", messages }), (error) => {
  assert.ok(error instanceof OpenAI.NotFoundError);
  assert.equal(error.code, "model_not_found");
  return true;
});
await assert.rejects(
  client.chat.completions.create({ model, messages: [{ role: "user", content: "word ".repeat(5000) }] }),
  (error) => error instanceof OpenAI.BadRequestError && error.code === "context_length_exceeded",
);
console.log("javascript: all right");
