"""The HTTP server of the benchmark, for engines whose clients are libraries."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web


async def serve(
    port: int,
    take: Callable[[str, int], Awaitable[None]],
    look: Callable[[str], Awaitable[list[int]]],
) -> None:
    """Serves requests: `take` returns when an event is durable, `look` returns the effective events."""

    async def event(request: web.Request) -> web.Response:
        body = await request.json()
        await take(request.match_info["key"], body["event"])
        return web.json_response({})

    async def state(request: web.Request) -> web.Response:
        return web.json_response({"events": await look(request.match_info["key"])})

    app = web.Application()
    app.router.add_post("/tally/{key}/event", event)
    app.router.add_post("/tally/{key}/state", state)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()
