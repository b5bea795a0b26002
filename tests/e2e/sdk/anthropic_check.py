"""Asks a node as the official Python SDK does: anthropic_check.py BASE_URL MODEL. Exits with a traceback if anything is not right."""
import asyncio
import sys

import anthropic

url, model = sys.argv[1:3]
MESSAGES = [{"role": "user", "content": "Say hello."}]
SYSTEM = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
TOOL = {"name": "weather", "description": "Of a city.", "input_schema": {"type": "object", "properties": {}}}
ASKED = {"model": model, "system": SYSTEM, "messages": MESSAGES, "max_tokens": 8}
# Greedy, so that two answers can be compared. The SDK has no parameter for it any more.
SAME = {**ASKED, "extra_body": {"temperature": 0}}


def prompt_tokens(usage):
    return usage.input_tokens + usage.cache_read_input_tokens


def refused(kind, status, call):
    try:
        call()
    except kind as error:
        assert error.status_code == status and error.body["type"] == "error", error
        assert error.request_id and error.body["request_id"] == error.request_id, error.body
        return error.body["error"]
    raise AssertionError("the call was served")


def check_sync():
    client = anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)
    assert model in [entry.id for entry in client.models.list()]
    assert client.models.retrieve(model).type == "model"
    whole = client.messages.create(**SAME)
    assert whole.type == "message" and whole.role == "assistant" and whole.model == model
    assert [block.type for block in whole.content] == ["text"] and whole.content[0].text
    assert whole.stop_reason == "max_tokens" and whole.usage.output_tokens == 8, whole
    assert whole._request_id
    counted = client.messages.count_tokens(model=model, system=SYSTEM, messages=MESSAGES)
    assert counted.input_tokens == prompt_tokens(whole.usage), (counted, whole.usage)
    with client.messages.stream(**SAME) as events:
        kinds = [event.type for event in events]
        final = events.get_final_message()
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop", kinds
    assert final.content[0].text and prompt_tokens(final.usage) == counted.input_tokens, final
    assert final.stop_reason == "max_tokens" and final.usage.output_tokens == 8
    text = ""
    for event in client.messages.create(**SAME, stream=True):
        if event.type == "message_start":
            assert prompt_tokens(event.message.usage) == counted.input_tokens, event
        if event.type == "content_block_delta":
            text += event.delta.text
    assert text == final.content[0].text, (text, final)
    stopped = client.messages.create(**{**SAME, "max_tokens": 60}, stop_sequences=["e"])
    assert stopped.stop_reason == "stop_sequence" and stopped.stop_sequence == "e", stopped
    assert "e" not in stopped.content[0].text
    beta = client.beta.messages.create(**ASKED, betas=["context-management-2025-06-27"])
    assert beta.content[0].text


def check_errors():
    client = anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)
    error = refused(anthropic.NotFoundError, 404, lambda: client.messages.create(**{**ASKED, "model": "absent"}))
    assert error["type"] == "not_found_error", error
    long = [{"role": "user", "content": "word " * 5000}]
    error = refused(anthropic.BadRequestError, 400, lambda: client.messages.create(**{**ASKED, "messages": long}))
    assert error["message"].startswith("prompt is too long: ") and error["message"].endswith(" maximum"), error
    error = refused(anthropic.BadRequestError, 400, lambda: client.messages.create(**ASKED, tools=[TOOL]))
    assert "no place for tools" in error["message"], error
    served = client.messages.create(**ASKED, tools=[{"type": "web_search_20250305", "name": "web_search"}])
    assert served.content, served


async def check_async():
    client = anthropic.AsyncAnthropic(base_url=url, auth_token="any", max_retries=0)

    async def one(stream):
        if not stream:
            return (await client.messages.create(**ASKED)).content[0].text
        async with client.messages.stream(**ASKED) as events:
            return "".join([text async for text in events.text_stream])

    answers = await asyncio.gather(*[one(index % 2 == 0) for index in range(6)])
    assert all(answers), answers


check_sync()
check_errors()
asyncio.run(check_async())
print("python: all right, anthropic", anthropic.__version__)
