"""A conversation with tools by the official Python SDK: anthropic_tools_check.py BASE_URL MODEL. The engine behind calls two tools and, once it has
their results, says that it rains."""
import sys

import anthropic

url, model = sys.argv[1:3]
client = anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)
TOOLS = [
    {
        "name": name,
        "description": "Of a city.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "cache_control": {"type": "ephemeral"},
    }
    for name in ("weather", "time")
]
messages = [{"role": "user", "content": "How is it in Bonn?"}]
asked = {"model": model, "max_tokens": 1000, "tools": TOOLS}

with client.messages.stream(**asked, messages=messages) as events:
    kinds = [event.type for event in events]
    answer = events.get_final_message()
assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 3, kinds
assert answer.stop_reason == "tool_use", answer
assert [block.type for block in answer.content] == ["thinking", "tool_use", "tool_use"], answer
thought, *calls = answer.content
assert thought.thinking == "Hm." and thought.signature, thought
assert [(call.name, call.input) for call in calls] == [("weather", {"city": "Köln"}), ("time", {})], calls
results = [
    {"type": "tool_result", "tool_use_id": calls[0].id, "content": [{"type": "text", "text": "Rain"}]},
    {"type": "tool_result", "tool_use_id": calls[1].id, "content": "no clock", "is_error": True},
]
messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
last = client.messages.create(**asked, messages=messages)
assert last.stop_reason == "end_turn" and last.content[0].text == "It rains.", last
print("python: tools all right")
