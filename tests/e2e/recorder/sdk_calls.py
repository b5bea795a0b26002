"""sdk_calls.py SDK URL: the official Python SDKs' calls that the recorder keeps, in a fixed order; all texts are ours."""
import sys

CITY = {'type': 'object', 'properties': {'city': {'type': 'string', 'description': 'Its name.'}}, 'required': ['city']}
QUESTION = 'How is the weather in Bonn?'
SCHEMA = {'type': 'object', 'properties': {'rains': {'type': 'boolean'}}, 'required': ['rains'], 'additionalProperties': False}


def anthropic_calls(url):
    import anthropic
    client = anthropic.Anthropic(base_url=url, api_key='any', max_retries=0)
    asked = {'model': 'small', 'max_tokens': 100, 'system': [{'type': 'text', 'text': 'Be brief.', 'cache_control': {'type': 'ephemeral'}}]}
    messages = [{'role': 'user', 'content': QUESTION}]
    client.messages.create(**asked, messages=messages)
    with client.messages.stream(**asked, messages=messages, metadata={'user_id': 'someone'}, stop_sequences=['END']) as events:
        events.until_done()
    tools = [{'name': 'weather', 'description': 'Of a city.', 'input_schema': CITY, 'cache_control': {'type': 'ephemeral'}}]
    thinking = {'type': 'adaptive'}
    called = client.messages.create(**asked, messages=messages, tools=tools, tool_choice={'type': 'auto', 'disable_parallel_tool_use': True}, thinking=thinking)
    call = called.content[-1]
    result = {'type': 'tool_result', 'tool_use_id': call.id, 'content': [{'type': 'text', 'text': 'Rain'}]}
    messages += [{'role': 'assistant', 'content': called.content}, {'role': 'user', 'content': [result]}]
    client.messages.create(**asked, messages=messages, tools=tools, thinking=thinking)
    client.messages.count_tokens(model='small', system='Be brief.', messages=messages, tools=tools)
    client.beta.messages.create(**asked, messages=messages[:1], betas=['context-management-2025-06-27'],
                                context_management={'edits': [{'type': 'clear_tool_uses_20250919'}]})


def openai_calls(url):
    import openai
    client = openai.OpenAI(base_url=url + '/v1', api_key='any', max_retries=0)
    messages = [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': QUESTION}]
    client.chat.completions.create(model='small', messages=messages)
    with client.chat.completions.stream(model='small', messages=messages, max_completion_tokens=100, stream_options={'include_usage': True}) as events:
        events.until_done()
    tools = [{'type': 'function', 'function': {'name': 'weather', 'description': 'Of a city.', 'parameters': CITY}}]
    called = client.chat.completions.create(model='small', messages=messages, tools=tools, parallel_tool_calls=False).choices[0].message
    messages += [called, {'role': 'tool', 'tool_call_id': called.tool_calls[0].id, 'content': 'Rain'}]
    client.chat.completions.create(model='small', messages=messages, tools=tools)
    form = {'type': 'json_schema', 'json_schema': {'name': 'weather', 'schema': SCHEMA, 'strict': True}}
    client.chat.completions.create(model='small', messages=messages[:2], response_format=form)


{'anthropic': anthropic_calls, 'openai': openai_calls}[sys.argv[1]](sys.argv[2])
