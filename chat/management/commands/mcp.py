from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser


class Command(BaseCommand):
    help = "Serves the site's MCP endpoint on standard input and output, for programs that start their servers."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--url", default="http://127.0.0.1:8000/mcp", help="The endpoint of a running site.")
        parser.add_argument("--key-file", type=Path, help="A file with an API key; without one, calls are anonymous.")

    def handle(self, *args: Any, **options: Any) -> None:
        key = options["key_file"].read_text().strip() if options["key_file"] else ""
        asyncio.run(_bridge_stdio_to_server(options["url"], {"Authorization": f"Bearer {key}"} if key else {}))


async def _bridge_stdio_to_server(url: str, headers: dict[str, str]) -> None:
    import anyio
    from mcp.client.streamable_http import streamable_http_client
    from mcp.server.stdio import stdio_server
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with (
        create_mcp_http_client(headers) as client,
        stdio_server() as (asked, said),
        streamable_http_client(url, http_client=client) as (answered, sent),
        anyio.create_task_group() as tasks,
    ):

        async def forward_server_messages() -> None:
            async for message in answered:
                if isinstance(message, Exception):
                    raise message
                await said.send(message)

        tasks.start_soon(forward_server_messages)
        async for message in asked:
            if isinstance(message, Exception):
                raise message
            await sent.send(message)
        tasks.cancel_scope.cancel()
