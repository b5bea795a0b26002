// A conversation with tools by the official JavaScript SDK: node anthropic_tools_check.mjs BASE_URL MODEL. The engine behind
// calls two tools and, once it has their results, says that it rains.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";

const [url, model] = process.argv.slice(2);
const client = new Anthropic({ baseURL: url, apiKey: "any", maxRetries: 0 });
const input_schema = { type: "object", properties: { city: { type: "string" } } };
const tools = ["weather", "time"].map((name) => ({ name, input_schema }));
const messages = [{ role: "user", content: "How is it in Bonn?" }];
const asked = { model, max_tokens: 1000, tools };

const answer = await client.messages.stream({ ...asked, messages }).finalMessage();
assert.equal(answer.stop_reason, "tool_use");
assert.deepEqual(answer.content.map((block) => block.type), ["thinking", "tool_use", "tool_use"]);
const calls = answer.content.slice(1);
assert.deepEqual(calls.map((call) => [call.name, call.input]), [["weather", { city: "Köln" }], ["time", {}]]);
messages.push({ role: "assistant", content: answer.content });
messages.push({
  role: "user",
  content: [
    { type: "tool_result", tool_use_id: calls[0].id, content: "Rain" },
    { type: "tool_result", tool_use_id: calls[1].id, content: "no clock", is_error: true },
  ],
});
const last = await client.messages.create({ ...asked, messages });
assert.equal(last.stop_reason, "end_turn");
assert.equal(last.content[0].text, "It rains.");
console.log("javascript: tools all right");
