"""The stand-in internet's servers: DNS, HTTP, HTTPS and small TCP and UDP services, as the names file says.

Usage: serve.py NAMES CA_DIRECTORY LOG. Prints "ready" when every socket listens, and serves until killed.
"""

import ipaddress
import json
import os
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

DNS_ADDRESS = "203.0.113.53"
DNS_TTL = 5


class Log:
    """One JSON object a line: what reached the internet, for tests to read."""

    def __init__(self, path):
        self.file = open(path, "a", buffering=1, encoding="utf-8")
        os.chmod(path, 0o644)
        self.lock = threading.Lock()

    def write(self, **event):
        with self.lock:
            self.file.write(json.dumps({"time": time.time(), **event}) + "\n")


class Names:
    """The names file: addresses and services of each name."""

    def __init__(self, path):
        self.addresses, self.services = {}, {}
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                if line.strip() and not line.startswith("#"):
                    name, addresses, *services = line.split()
                    self.addresses[name] = [ipaddress.ip_address(each) for each in addresses.split(",")]
                    self.services[name] = services

    def exists(self, name):
        return any(each == name or each.endswith("." + name) for each in self.addresses)


# --- DNS (RFC 1035): A and AAAA of the names file, everything else NODATA or NXDOMAIN -------------------------------


def dns_answer(query, names, log, transport):
    """The response to one query, or None for what is not a query."""
    if len(query) < 17 or query[2] & 0x80:
        return None
    labels, offset = [], 12
    while offset < len(query) and query[offset]:
        labels.append(query[offset + 1 : offset + 1 + query[offset]].decode("latin-1"))
        offset += 1 + query[offset]
    question_end = offset + 5
    kind = int.from_bytes(query[offset + 1 : offset + 3], "big")
    name = ".".join(labels).lower()
    wanted = {1: 4, 28: 6}.get(kind)
    records = [a.packed for a in names.addresses.get(name, []) if a.version == wanted]
    rcode = 0 if names.exists(name) else 3
    log.write(service="dns", transport=transport, name=name, type=kind, rcode=rcode)
    head = query[:2] + bytes([0x84 | (query[2] & 1), 0x80 | rcode]) + b"\0\1" + len(records).to_bytes(2, "big") + b"\0\0\0\0"
    body = b"".join(
        b"\xc0\x0c" + kind.to_bytes(2, "big") + b"\0\1" + DNS_TTL.to_bytes(4, "big") + len(data).to_bytes(2, "big") + data
        for data in records
    )
    return head + query[12:question_end] + body


class DnsUdp(socketserver.BaseRequestHandler):
    def handle(self):
        query, sock = self.request
        answer = dns_answer(query, self.server.names, self.server.log, "udp")
        if answer:
            sock.sendto(answer, self.client_address)


class DnsTcp(socketserver.StreamRequestHandler):
    timeout = 10

    def handle(self):
        while len(head := self.rfile.read(2)) == 2:
            answer = dns_answer(self.rfile.read(int.from_bytes(head, "big")), self.server.names, self.server.log, "tcp")
            if not answer:
                return
            self.wfile.write(len(answer).to_bytes(2, "big") + answer)


# --- HTTP and HTTPS ------------------------------------------------------------------------------------------------


class Web(BaseHTTPRequestHandler):
    """Says what arrived, as JSON. /bytes/N sends N bytes, /git/ is git's own server, POST /v1/messages a model that says hello."""

    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def reply(self, body, kind="application/json", status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            chunks = []
            while size := int(self.rfile.readline(64).split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline(8)
            while self.rfile.readline(1024).strip():
                pass
            return b"".join(chunks)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self):
        body = self.body()
        path = urlsplit(self.path).path
        sni = getattr(self.connection, "lab_sni", None)
        seen = {
            "service": "https" if isinstance(self.connection, ssl.SSLSocket) else "http",
            "sni": sni,
            "host": self.headers.get("Host"),
            "method": self.command,
            "path": self.path,
            "length": len(body),
            "client": self.client_address[0],
            "server": self.connection.getsockname()[0],
        }
        self.server.log.write(**seen)
        if path.startswith("/bytes/"):
            self.reply(bytes(min(int(path.split("/")[2]), 1 << 30)), "application/octet-stream")
        elif path.startswith("/git/"):
            self.git(path[len("/git") :], body)
        elif path.startswith("/v1/messages") and self.command == "POST":
            self.model(path, body)
        elif self.headers.get("Host", "").split(":")[0] == "api.anthropic.com" and path.startswith("/api/"):
            # Settings, limits, telemetry: Claude Code does without, and retries an answer it cannot read.
            self.reply(b'{"type":"error","error":{"type":"not_found_error","message":"not here"}}', status=404)
        else:
            self.reply(json.dumps(seen | {"headers": dict(self.headers)}).encode() + b"\n")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer

    def git(self, path, body):
        """Git's smart protocol by git's own CGI program (git-http-backend(1))."""
        url = urlsplit(self.path)
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": "/srv/git",
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "PATH_INFO": path,
            "QUERY_STRING": url.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": self.client_address[0],
        }
        ran = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, timeout=30, check=False)
        head, _, content = ran.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.reply(content, fields.get("Content-Type", "text/plain"), int(fields.get("Status", "200").split()[0]))

    def model(self, path, body):
        """The Messages API, as little of it as one prompt needs. The model only ever says one sentence."""
        if path.endswith("/count_tokens"):
            self.reply(b'{"input_tokens":1}')
            return
        asked = json.loads(body)
        text = "Hello from the stand-in model."
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "msg_lab", "type": "message", "role": "assistant", "model": asked.get("model", "lab")}
        if not asked.get("stream"):
            content = [{"type": "text", "text": text}]
            message |= {"content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
            self.reply(json.dumps(message).encode())
            return
        message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        events = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]
        stream = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
        self.reply(stream.encode(), "text/event-stream")


# --- Small TCP and UDP services ------------------------------------------------------------------------------------


class Banner(socketserver.StreamRequestHandler):
    """Speaks first, then echoes."""

    timeout = 60

    def handle(self):
        address, port = self.connection.getsockname()[:2]
        self.server.log.write(service="banner", client=self.client_address[0], server=address, port=port)
        self.wfile.write(f"banner of {address} port {port}\n".encode())
        while data := self.connection.recv(65536):
            self.wfile.write(data)


class Echo(socketserver.StreamRequestHandler):
    timeout = 60

    def handle(self):
        address, port = self.connection.getsockname()[:2]
        self.server.log.write(service="echo", client=self.client_address[0], server=address, port=port)
        while data := self.connection.recv(65536):
            self.wfile.write(data)


class UdpEcho(socketserver.BaseRequestHandler):
    def handle(self):
        data, sock = self.request
        self.server.log.write(service="udp-echo", client=self.client_address[0], length=len(data))
        sock.sendto(data, self.client_address)


class TcpServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512
    tls = None

    def finish_request(self, request, client_address):
        # The handshake runs here, in the connection's own thread, so that a slow client holds up nobody.
        if self.tls:
            request.settimeout(20)
            request = self.tls.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, TimeoutError, ssl.SSLError, OSError)):
            super().handle_error(request, client_address)


class UdpServer(socketserver.ThreadingUDPServer):
    daemon_threads = True


def tls_context(names, directory):
    """One context that presents the certificate of the name asked for, and none for a name that has none."""
    contexts = {}
    for name in names.addresses:
        path = os.path.join(directory, name + ".pem")
        if os.path.exists(path):
            contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            contexts[name].load_cert_chain(path)
            contexts[name].set_alpn_protocols(["http/1.1"])

    def choose(sock, name, _):
        sock.lab_sni = name
        if name not in contexts:
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        sock.context = contexts[name]
        return None

    front = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    front.set_alpn_protocols(["http/1.1"])
    front.sni_callback = choose
    return front


def main(names_path, directory, log_path):
    names, log = Names(names_path), Log(log_path)
    tls = tls_context(names, directory)
    started = set()

    def serve(server_class, address, port, handler, context=None):
        if (server_class, address, port) in started:  # Two names can share an address.
            return
        started.add((server_class, address, port))
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        server = type("Server", (server_class,), {"address_family": family})((address, port), handler)
        server.names, server.log, server.tls = names, log, context
        threading.Thread(target=server.serve_forever, daemon=True).start()

    serve(UdpServer, DNS_ADDRESS, 53, DnsUdp)
    serve(TcpServer, DNS_ADDRESS, 53, DnsTcp)
    for name, services in names.services.items():
        for address in map(str, names.addresses[name]):
            for service in services:
                kind, _, port = service.partition(":")
                if kind == "http":
                    serve(TcpServer, address, 80, Web)
                elif kind == "https":
                    serve(TcpServer, address, 443, Web, tls)
                elif kind == "banner":
                    serve(TcpServer, address, int(port), Banner)
                elif kind == "echo":
                    serve(TcpServer, address, int(port), Echo)
                elif kind == "udp-echo":
                    serve(UdpServer, address, int(port), UdpEcho)
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
