"""Asks a node as the official Python SDK does, for engines that tell no probabilities and are bound to no format:
openai_small_check.py BASE_URL MODEL. Exits with a traceback if anything is not right."""
import asyncio
import sys

import openai

url, model = sys.argv[1:3]
ASKED = {"model": model, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8, "temperature": 0}


def check_sync():
    client = openai.OpenAI(base_url=url, api_key="any", max_retries=0)
    assert model in [entry.id for entry in client.models.list()]
    whole = client.chat.completions.create(**ASKED)
    text = whole.choices[0].message.content
    assert text and whole.choices[0].finish_reason == "length" and whole.usage.completion_tokens == 8, whole
    streamed, usage = "", None
    for chunk in client.chat.completions.create(**ASKED, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        streamed += "".join(choice.delta.content or "" for choice in chunk.choices)
    assert streamed == text and usage == whole.usage, (streamed, text, usage)
    for unknown in ({"logprobs": True}, {"response_format": {"type": "json_object"}}, {"logit_bias": {"5": 1}}):
        try:
            client.chat.completions.create(**ASKED, **unknown)
        except openai.BadRequestError as error:
            assert error.param == next(iter(unknown)), error
        else:
            raise AssertionError(f"{unknown} was left out without a word")


async def check_async():
    client = openai.AsyncOpenAI(base_url=url, api_key="any", max_retries=0)
    answers = await asyncio.gather(*(client.chat.completions.create(**ASKED) for _ in range(2)))
    assert answers[0].choices[0].message.content == answers[1].choices[0].message.content


check_sync()
asyncio.run(check_async())
print(f"python: all right, openai {openai.__version__}")
