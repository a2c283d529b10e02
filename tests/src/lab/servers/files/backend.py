"""The backend behind nginx: server-sent events and echoes on 9000, websockets on 9001."""

import asyncio
import http.server
import threading
import time
import urllib.parse

import websockets


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        pause = float(query.get("pause", ["0"])[0])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in ("first", "last"):
            self.wfile.write(f"data: {event}\n\n".encode())
            self.wfile.flush()
            if event == "first":
                time.sleep(pause)
        self.close_connection = True

    def do_POST(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                body += self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    break
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


async def echo(socket, _path=None):
    async for message in socket:
        await socket.send(message)


async def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 9000), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    async with websockets.serve(echo, "127.0.0.1", 9001, ping_interval=None):
        await asyncio.Future()


asyncio.run(main())
