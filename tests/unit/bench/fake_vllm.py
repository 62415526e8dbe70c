"""Behaves like `vllm serve` where the benchmark looks: /health, /v1/chat/completions, /metrics.

With a speculative configuration each step gives four tokens of which three were drafted, else one.
"""

from __future__ import annotations

import argparse
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER_TOKENS = 40
parser = argparse.ArgumentParser()
parser.add_argument("command", choices=["serve"])
parser.add_argument("model")
parser.add_argument("--host")
parser.add_argument("--port", type=int)
parser.add_argument("--speculative-config", type=json.loads)
parser.add_argument("--broken", action="store_true")
options = parser.parse_args()
if options.broken:
    sys.exit("no such device: abacus")
answers = 0


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/metrics":
            self.reply(metrics())
        else:
            self.reply("")

    def do_POST(self):
        global answers
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answers += 1
        text = f"as asked: {body['messages'][-1]['content'][-20:]}"
        self.reply(json.dumps({"choices": [{"message": {"content": text}}]}))

    def reply(self, text):
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


def metrics():
    drafted = options.speculative_config is not None
    steps = answers * ANSWER_TOKENS // (4 if drafted else 1)
    counted = {"generation_tokens_total": answers * ANSWER_TOKENS, "iteration_tokens_total_count": steps}
    if drafted:
        counted |= {
            "spec_decode_num_drafts_total": steps,
            "spec_decode_num_draft_tokens_total": 6 * steps,
            "spec_decode_num_accepted_tokens_total": 3 * steps,
        }
    labels = '{engine="0",model_name="m"}'
    return "# HELP\n" + "".join(f"vllm:{name}{labels} {float(value)}\n" for name, value in counted.items())


ThreadingHTTPServer((options.host, options.port), Handler).serve_forever()
