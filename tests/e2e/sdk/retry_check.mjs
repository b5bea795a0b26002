// A call that an official JavaScript SDK gives up after two seconds and sends again: node retry_check.mjs SDK BASE_URL MODEL. The
// engine behind answers all tries but the first.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const [sdk, url, model] = process.argv.slice(2);
const messages = [{ role: "user", content: "Hi" }];
const patience = { apiKey: "any", timeout: 2000, maxRetries: 3 };
let text;
if (sdk === "anthropic") {
  const client = new Anthropic({ baseURL: url, ...patience });
  text = (await client.messages.create({ model, max_tokens: 9, messages })).content[0].text;
} else {
  const client = new OpenAI({ baseURL: url + "/v1", ...patience });
  text = (await client.chat.completions.create({ model, messages })).choices[0].message.content;
}
assert.equal(text, "later");
