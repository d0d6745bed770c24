"""A way that takes time: hands on what comes in after some milliseconds, in both directions.

python far.py PORT MILLISECONDS      prints its own port, and runs until it is ended
"""

import asyncio
import sys


async def main() -> None:
    port, delay = int(sys.argv[1]), float(sys.argv[2]) / 1000
    loop = asyncio.get_running_loop()

    async def hand_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while piece := await source.read(65536):
            loop.call_later(delay, target.write, piece)
        loop.call_later(delay, target.close)

    async def serve(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        behind = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(hand_on(source, behind[1]), hand_on(behind[0], target))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
