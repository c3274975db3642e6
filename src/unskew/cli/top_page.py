"""The page of `unskew top --web`: served on 127.0.0.1 only, updates itself, needs nothing from outside."""

import json
from functools import partial
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from unskew.batch_records import names_in, read_records
from unskew.errors import InputError
from unskew.page import STYLE

HOST = "127.0.0.1"
MOST_BATCHES = 200
SCRIPT = """
const NS = "http://www.w3.org/2000/svg";
const make = (tag, attributes, text) => {
  const each = tag === "svg" || tag === "rect" || tag === "polyline" || tag === "text" || tag === "title"
    ? document.createElementNS(NS, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) each.setAttribute(name, value);
  if (text !== undefined) each.textContent = text;
  return each;
};
const bars = (load) => {
  const mean = load.reduce((a, b) => a + b, 0) / load.length, most = Math.max(...load, 1), width = 800 / load.length;
  const svg = make("svg", {viewBox: "0 0 800 200", role: "img", "aria-label": "rows per worker"});
  load.forEach((rows, worker) => {
    const height = 180 * rows / most;
    const bar = make("rect", {x: worker * width + 1, y: 190 - height, width: Math.max(1, width - 2), height,
      fill: rows > 1.2 * mean ? "#c8553d" : "#2a7f62"});
    bar.append(make("title", {}, `worker ${worker}: ${rows.toLocaleString()} rows`));
    svg.append(bar);
  });
  return svg;
};
const history = (records) => {
  const values = records.map(r => r.max_over_mean || 1), most = Math.max(1.5, ...values);
  const svg = make("svg", {viewBox: "0 0 800 140", role: "img", "aria-label": "max over mean by batch"});
  const points = values.map((v, i) => `${800 * (i + 0.5) / values.length},${130 - 110 * (v - 1) / (most - 1)}`);
  svg.append(make("polyline", {points: points.join(" "), fill: "none", stroke: "#2a7f62", "stroke-width": 2}));
  svg.append(make("text", {x: 4, y: 16, "font-size": 14}, most.toFixed(2)));
  svg.append(make("text", {x: 4, y: 138, "font-size": 14}, "1"));
  return svg;
};
const figure = (svg, caption) => {
  const each = make("figure"); each.append(svg, make("figcaption", {}, caption)); return each;
};
const table = (heads, rows) => {
  const each = make("table"), head = make("tr"), scroll = make("div", {class: "scroll"});
  heads.forEach(text => head.append(make("th", {}, text))); each.append(head);
  rows.forEach(cells => {
    const row = make("tr"); cells.forEach(text => row.append(make("td", {}, text))); each.append(row);
  });
  scroll.append(each); return scroll;
};
const show = (found) => {
  const parts = [];
  for (const [name, records] of Object.entries(found)) {
    if (!records.length) continue;
    const last = records[records.length - 1], over = last.max_over_mean;
    const plan = last.plan === null ? "online" : last.plan < 0 ? "no readable plan" : "plan " + last.plan;
    parts.push(make("h2", {}, name));
    parts.push(make("p", {id: `last-${name}`}, `batch ${last.batch}: ${last.rows.toLocaleString()} rows in ` +
      `${last.seconds.toFixed(2)} s, ${last.scheme}, ${plan}, busiest over mean ${over === null ? "?" : over}`));
    if (last.load.length) parts.push(
      figure(bars(last.load), "Rows per worker in the last batch; red: over 1.2 times the mean."));
    else parts.push(make("p", {}, "rows per worker: not counted"));
    parts.push(figure(history(records), "Busiest worker over the mean, batch by batch."));
    if (last.plan !== null) parts.push(table(["hot key", "share", "workers"], last.hot_keys.map(hot =>
      [hot.key ?? `(id ${hot.key_id})`, (100 * hot.share).toFixed(1) + " %", hot.workers])));
  }
  if (!parts.length) parts.push(make("p", {}, "no micro-batch yet"));
  document.getElementById("found").replaceChildren(...parts);
};
const look = async () => {
  try {
    const answer = await fetch("records.json");
    if (answer.ok) show(await answer.json());
    document.getElementById("state").textContent = answer.ok ? "" : "the checkpoint is gone; this was there last";
  } catch (error) {
    document.getElementById("state").textContent = "unskew top has ended; what you see is the last state";
  }
};
look(); setInterval(look, EVERY);
"""


def serve(folder: Path, port: int, every: float) -> None:
    """Serve until Ctrl-C."""
    server = make_server(folder, port, every)
    print(f"http://{HOST}:{server.server_port}/  (Ctrl-C ends it)", flush=True)
    with server:
        server.serve_forever()


def make_server(folder: Path, port: int, every: float) -> ThreadingHTTPServer:
    """A server that looks into `folder` whenever it is asked. InputError where the port is taken."""
    try:
        return ThreadingHTTPServer((HOST, port), partial(_Handler, folder, every))
    except OSError as error:
        raise InputError(f"port: {port} cannot be used: {error.strerror}; name another, or 0 for a free one") from None


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, folder: Path, every: float, *arguments: object) -> None:
        self._folder, self._every = folder, every
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        if self.path in ("/", "/index.html"):
            self._answer("text/html; charset=utf-8", _page(self._folder, self._every))
        elif self.path == "/records.json":
            try:
                self._answer("application/json", _records(self._folder))
            except InputError as error:  # the checkpoint is gone
                self.send_error(HTTPStatus.GONE, str(error))
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _answer(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """Nothing: requests come every second."""


def _records(folder: Path) -> str:
    """What the page draws: of all batches but the last without the rows of each worker, of which there may be many."""
    found = {}
    for name in names_in(folder):
        records = [json.loads(each.to_json()) for each in read_records(folder, name)[-MOST_BATCHES:]]
        found[name] = [record | {"load": []} for record in records[:-1]] + records[-1:]
    return json.dumps(found)


def _page(folder: Path, every: float) -> str:
    title = f"unskew top {escape(str(folder))}"
    script = SCRIPT.replace("EVERY", str(int(1000 * every)))
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><link rel="icon" href="data:,"><title>{title}</title>'
        f'<style>{STYLE}</style></head>\n<body><h1>{title}</h1><p class="lead" id="state"></p>'
        f'<div id="found"></div><script>{script}</script></body>\n</html>\n'
    )
