"""Asks a node as the official Python SDK does: openai_check.py BASE_URL MODEL. Exits with a traceback if anything is not right."""
import asyncio
import json
import sys

import openai

url, model = sys.argv[1:3]
MESSAGES = [{"role": "user", "content": "Say hello."}]
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "lamp",
        "schema": {
            "type": "object",
            "properties": {"on": {"type": "boolean"}},
            "required": ["on"],
            "additionalProperties": False,
        },
    },
}


def check_sync():
    client = openai.OpenAI(base_url=url, api_key="any", max_retries=0)
    assert model in [entry.id for entry in client.models.list()]
    assert client.models.retrieve(model).id == model
    whole = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=8, temperature=0)
    assert whole.choices[0].message.role == "assistant" and whole.choices[0].message.content
    assert whole.usage.prompt_tokens > 0 and whole.usage.completion_tokens == 8, whole.usage
    assert whole.model == model and whole.choices[0].finish_reason == "length"
    text, usage = "", None
    stream = client.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=8, temperature=0, stream=True, stream_options={"include_usage": True}
    )
    for chunk in stream:
        if chunk.choices:
            text += chunk.choices[0].delta.content or ""
        usage = chunk.usage or usage
    assert text == whole.choices[0].message.content, (text, whole)
    assert usage.completion_tokens == 8
    shaped = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=60, response_format=SCHEMA)
    assert isinstance(json.loads(shaped.choices[0].message.content)["on"], bool)
    # The helper wants an answer that ends by itself.
    with client.chat.completions.stream(model=model, messages=MESSAGES, max_tokens=60, response_format=SCHEMA) as events:
        kinds = {event.type for event in events}
        final = events.get_final_completion()
    assert "content.delta" in kinds and final.choices[0].finish_reason == "stop", final
    probable = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=2, temperature=0, logprobs=True)
    assert len(probable.choices[0].logprobs.content) == 2


def check_errors():
    client = openai.OpenAI(base_url=url, api_key="any", max_retries=0)
    try:
        client.chat.completions.create(model="absent", messages=MESSAGES)
        raise AssertionError("an unknown model was served")
    except openai.NotFoundError as error:
        assert error.code == "model_not_found" and error.request_id, error
    try:
        client.chat.completions.create(model=model, messages=[{"role": "user", "content": "word " * 5000}])
        raise AssertionError("a prompt over the context was served")
    except openai.BadRequestError as error:
        assert error.code == "context_length_exceeded", error


async def check_async():
    client = openai.AsyncOpenAI(base_url=url, api_key="any", max_retries=0)

    async def one(stream):
        answer = await client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=4, stream=stream)
        if not stream:
            return answer.choices[0].message.content
        return "".join([chunk.choices[0].delta.content or "" async for chunk in answer if chunk.choices])

    answers = await asyncio.gather(*[one(index % 2 == 0) for index in range(6)])
    assert all(answers), answers


check_sync()
check_errors()
asyncio.run(check_async())
print("python: all right, openai", openai.__version__)
