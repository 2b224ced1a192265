// The comparison's program around a client for Node: compare/PROTOCOL.md.
//
//     node peer.js NAME --host …      NAME is that of a module in clients/
//
// A caller is an async function. What a module in clients/ does is all that
// differs: `open` connects and gives get, set, batch and close.

import { Load, Stream } from "./load.js";
import { parseOptions } from "./options.js";
import { OVER, Tally } from "./tally.js";

function fail(problem) {
  process.stderr.write(`${process.argv[2]}: ${problem?.message ?? problem}\n`);
  process.exit(1);
}

/** One command, its reply, the next one, which begins where the last one ended: the clock is read once for each. */
async function waiter(load, tally, client, stream) {
  let begun = performance.now();
  while (tally.phase !== OVER) {
    stream.draw();
    const { number, isSet } = stream;
    let reply;
    try {
      if (isSet) {
        tally.sets++;
        reply = await client.set(load.keys[number], load.value(number));
      } else {
        tally.gets++;
        reply = await client.get(load.keys[number]);
      }
    } catch (error) {
      reply = error;
    }
    const now = performance.now();
    tally.count(isSet, load.value(number), reply, now - begun);
    begun = now;
  }
}

/** Many commands, all their replies, the next ones. */
async function batcher(load, tally, client, stream, size) {
  const numbers = new Uint32Array(size);
  const isSet = new Uint8Array(size);
  while (tally.phase !== OVER) {
    const begun = performance.now();
    const batch = client.batch();
    for (let i = 0; i < size; i++) {
      stream.draw();
      const { number } = stream;
      numbers[i] = number;
      isSet[i] = stream.isSet ? 1 : 0;
      if (stream.isSet) {
        tally.sets++;
        batch.set(load.keys[number], load.value(number));
      } else {
        tally.gets++;
        batch.get(load.keys[number]);
      }
    }
    const replies = await batch.end();
    const took = performance.now() - begun;
    for (let i = 0; i < size; i++) tally.count(isSet[i] === 1, load.value(numbers[i]), replies[i], took);
  }
}

async function main([name, ...args]) {
  const { open, version, notes } = await import(`./clients/${name}.js`);
  const options = parseOptions(args);
  const load = new Load(options);
  const late = setTimeout(() => fail(`no connection to ${options.host}:${options.port} in 5 s`), 5000);
  const clients = await Promise.all(Array.from({ length: options.connections }, () => open(options)));
  clearTimeout(late);

  const tally = new Tally(options);
  const window = tally.schedule();
  const callers = options.style === "batch" ? options.inFlight / options.batch : options.inFlight;
  await Promise.all(
    Array.from({ length: callers }, (_, caller) => {
      const client = clients[caller % clients.length];
      const stream = new Stream(options, caller);
      return options.style === "batch" ? batcher(load, tally, client, stream, options.batch) : waiter(load, tally, client, stream);
    }),
  );
  await window;
  const connections = clients.reduce((sum, client) => sum + client.connections(), 0);
  process.stdout.write(JSON.stringify(tally.report(name, version, connections, notes)) + "\n", () => process.exit(0));
}

main(process.argv.slice(2)).catch(fail);
