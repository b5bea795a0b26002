"""A call that an official Python SDK gives up after two seconds and sends again: retry_check.py SDK BASE_URL MODEL. The engine behind answers all tries but the
first."""
import sys

sdk, url, model = sys.argv[1:4]
MESSAGES = [{"role": "user", "content": "Hi"}]
PATIENCE = {"api_key": "any", "timeout": 2, "max_retries": 3}

if sdk == "anthropic":
    import anthropic

    client = anthropic.Anthropic(base_url=url, **PATIENCE)
    text = client.messages.create(model=model, max_tokens=9, messages=MESSAGES).content[0].text
else:
    import openai

    client = openai.OpenAI(base_url=url + "/v1", **PATIENCE)
    text = client.chat.completions.create(model=model, messages=MESSAGES).choices[0].message.content
assert text == "later", text
