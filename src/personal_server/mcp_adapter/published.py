"""The lists as the SDK sends them: built once from constants, returned as they stand.

Source: MCP adapter contract 2.4, 11, 12, 13.
"""

from collections.abc import Mapping
from functools import cache

import mcp_types as types

from personal_server.mcp_adapter.contract import ToolContract, contract
from personal_server.mcp_adapter.prompts import Prompt, prompts
from personal_server.mcp_adapter.resources import Listed, fixed, templates

ttl_ms = 300_000


@cache
def list_tools_result() -> types.ListToolsResult:
    """Six tools in their order."""
    return types.ListToolsResult(
        tools=[_tool(tool) for tool in contract().tools.values()],
        ttl_ms=ttl_ms,
        cache_scope="public",
    )


def _tool(tool: ToolContract) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations.model_validate(tool.annotations),
    )


@cache
def list_resources_result() -> types.ListResourcesResult:
    """The fixed resources."""
    listed = [_resource(item) for item in fixed]
    return types.ListResourcesResult(resources=listed, ttl_ms=ttl_ms, cache_scope="public")


def _resource(item: Listed) -> types.Resource:
    return types.Resource(
        uri=item.uri,
        name=item.name,
        title=item.title,
        description=item.description,
        mime_type=item.mime_type,
    )


@cache
def list_templates_result() -> types.ListResourceTemplatesResult:
    """The templates."""
    listed = [
        types.ResourceTemplate(
            uri_template=item.uri,
            name=item.name,
            title=item.title,
            description=item.description,
            mime_type=item.mime_type,
        )
        for item in templates
    ]
    return types.ListResourceTemplatesResult(
        resource_templates=listed, ttl_ms=ttl_ms, cache_scope="public"
    )


@cache
def list_prompts_result() -> types.ListPromptsResult:
    """The prompts."""
    listed = [_prompt(prompt) for prompt in prompts.values()]
    return types.ListPromptsResult(prompts=listed, ttl_ms=ttl_ms, cache_scope="public")


def _prompt(prompt: Prompt) -> types.Prompt:
    return types.Prompt(
        name=prompt.name,
        title=prompt.title,
        description=prompt.description,
        arguments=[
            types.PromptArgument(
                name=argument.name, description=argument.description, required=argument.required
            )
            for argument in prompt.arguments
        ],
    )


def prompt_result(prompt: Prompt, given: Mapping[str, str]) -> types.GetPromptResult:
    """One prompt rendered for these arguments.

    Raises: UnusableArguments.
    """
    content = types.TextContent(text=prompt.render(given))
    message = types.PromptMessage(role="user", content=content)
    return types.GetPromptResult(description=prompt.description, messages=[message])
