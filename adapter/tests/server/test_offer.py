from pdpp_mcp_server.server_offer import personal_data


def test_every_listed_tool_and_prompt_is_answered_and_no_other() -> None:
    listed = [tool.name for tool in personal_data.list_tools().tools]
    assert listed == list(personal_data.tools)
    assert [p.name for p in personal_data.list_prompts().prompts] == list(personal_data.prompts)
