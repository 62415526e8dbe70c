"""llama-server with one model and one slot: `python -m tests.engines.llama_server MODEL.gguf NAME CONTEXT_TOKENS`.

Says its address on stdout once it answers, and ends when stdin does.
"""

from __future__ import annotations

import sys


def main(gguf: str, name: str, context_tokens: int) -> None:
    """Serve until stdin ends."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = gguf
    params.model_alias = {name}
    params.n_ctx = context_tokens
    params.n_parallel = 1
    params.port = 0
    # Threads that wait for one another hang where other programs keep the cores busy.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)  # noqa: T201 (it is what it is for)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
